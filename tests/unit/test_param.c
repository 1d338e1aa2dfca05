/*
 * test_param - units, bounds, round trips, option rows
 */
#include "tests/unit/suite.h"

#include "emu/core/doc.h"

#include <stdlib.h>

enum { TIME, RATE, BYTES, COUNT };

static enum gw_status parse(int kind, const char *s, uint64_t *v, struct gw_error *err)
{
    switch (kind) {
    case TIME:
        return gw_parse_time(s, v, err);
    case RATE:
        return gw_parse_rate(s, v, err);
    case BYTES:
        return gw_parse_bytes(s, v, err);
    default:
        return gw_parse_u64(s, v, err);
    }
}

static void test_good(void)
{
    static const struct { int kind; const char *s; uint64_t want; } rows[] = {
        { TIME, "20ms", UINT64_C(20000000000) },
        { TIME, "1.5us", 1500000 },
        { TIME, "1ps", 1 },
        { TIME, "0", 0 },
        { TIME, "0.0", 0 },
        { TIME, "0s", 0 },
        { TIME, ".5ns", 500 },
        { TIME, "20 ms", UINT64_C(20000000000) },
        { TIME, "1min", UINT64_C(60000000000000) },
        { TIME, "1h", UINT64_C(3600000000000000) },
        { TIME, "1e3s", UINT64_C(1000000000000000) },
        { TIME, "1e-3s", UINT64_C(1000000000) },
        { TIME, "0.1s", UINT64_C(100000000000) },
        { TIME, "0.3us", 300000 },
        { TIME, "18446744.073709551615s", UINT64_MAX },
        { TIME, "0.3333333333333333333333333ns", 333 },
        { TIME, "0.0005ns", 1 },
        { TIME, "0000000000000000000000000000001ps", 1 },
        { TIME, "010ms", UINT64_C(10000000000) },
        { TIME, "1000000000000000000000000000000e-30s", UINT64_C(1000000000000) },
        { RATE, "1.5gbit", 1500000000 },
        { RATE, "10gbit", UINT64_C(10000000000) },
        { RATE, "400Gbit", UINT64_C(400000000000) },
        { RATE, "1bit", 1 },
        { RATE, "1kbit", 1000 },
        { RATE, "2Mbit", 2000000 },
        { RATE, "10tbit", UINT64_C(10000000000000) },
        { RATE, "1Kibit", 1024 },
        { RATE, "1Mibit", 1048576 },
        { RATE, "1Gibit", 1073741824 },
        { RATE, "1Tibit", UINT64_C(1099511627776) },
        { RATE, "0", 0 },
        { BYTES, "64KiB", 65536 },
        { BYTES, "1500", 1500 },
        { BYTES, "1500B", 1500 },
        { BYTES, "1kB", 1000 },
        { BYTES, "1.5KiB", 1536 },
        { BYTES, "25MB", 25000000 },
        { BYTES, "1GiB", 1073741824 },
        { BYTES, "4TiB", UINT64_C(4398046511104) },
        { BYTES, "2GB", 2000000000 },
        { BYTES, "3TB", UINT64_C(3000000000000) },
        { BYTES, "64MiB", 67108864 },
        { BYTES, "18446744073709551615", UINT64_MAX },
        { BYTES, "4294967297", UINT64_C(4294967297) },
        { COUNT, "0", 0 },
        { COUNT, "1000", 1000 },
        { COUNT, "1e6", 1000000 },
        { COUNT, "010", 10 },
        { COUNT, "18446744073709551615", UINT64_MAX },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        uint64_t got = 12345;
        enum gw_status st = parse(rows[i].kind, rows[i].s, &got, &err);

        CHECK_ROW(!st && got == rows[i].want, "%s: got %llu want %llu (%s)", rows[i].s,
                  (unsigned long long)got, (unsigned long long)rows[i].want, err.text);
    }
}

static void test_bad(void)
{
    static const struct { int kind; const char *s, *says; } rows[] = {
        { TIME, "20", "lacks its unit" },
        { TIME, "", "no value" },
        { TIME, "-5ms", "negative" },
        { TIME, "5", "ps, ns, us, ms, s, min or h" },
        { TIME, "5m", "unknown unit" },
        { TIME, "5MS", "spelt ms" },
        { TIME, "ms", "is not a time" },
        { TIME, "0x10ms", "unknown unit" },
        { TIME, "5msx", "unknown unit" },
        { TIME, "1.2.3s", "unknown unit" },
        { TIME, "+5ms", "is not a time" },
        { TIME, "nan", "is not a time" },
        { TIME, "infs", "is not a time" },
        { TIME, "18446744.073709551616s", "too large" },
        { TIME, "5125h", "too large" },
        { TIME, "1e99999999999s", "too large" },
        { TIME, "0.0001ps", "too small" },
        { TIME, "1e-99999999s", "too small" },
        { TIME, "1e-2147483648s", "too small" },
        { TIME, "5 m s", "unknown unit" },
        { RATE, "10", "lacks its unit" },
        { RATE, "-1gbit", "negative" },
        { RATE, "10gbps", "bits to some and bytes to others" },
        { RATE, "10g", "unknown unit" },
        { RATE, "1MB", "unknown unit" },
        { RATE, "0.1bit", "too small" },
        { RATE, "1e30gbit", "too large" },
        { RATE, "50%", "unknown unit" },
        { BYTES, "-1", "negative" },
        { BYTES, "1.5", "not a whole number" },
        { BYTES, "0.3KiB", "not a whole number" },
        { BYTES, "1.00000000000000000000000000000001B", "not a whole number" },
        { BYTES, "64KIB", "spelt KiB" },
        { BYTES, "64kb", "spelt kB" },
        { BYTES, "64Mbit", "unknown unit" },
        { BYTES, "16777216TiB", "too large" },
        { BYTES, "18446744073709551616", "too large" },
        { COUNT, "1.5", "not a whole number" },
        { COUNT, "4x", "not a count" },
        { COUNT, "-4", "negative" },
        { COUNT, "4k", "without unit" },
        { COUNT, "0x10", "not a count" },
        { COUNT, "99999999999999999999999999999999999999999999", "too large" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        uint64_t got = 12345;
        enum gw_status st = parse(rows[i].kind, rows[i].s, &got, &err);

        CHECK_ROW(st == GW_PARAM && got == 12345 && strstr(err.text, rows[i].says),
                  "\"%s\": got %d \"%s\" want \"%s\"", rows[i].s, st, err.text, rows[i].says);
    }
}

static void test_fraction(void)
{
    static const struct { const char *s; bool good; double want; } rows[] = {
        { "0.01%", true, 0.0001 }, { "100%", true, 1 }, { "0%", true, 0 }, { "0", true, 0 },
        { "1%", true, 0.01 }, { "50%", true, 0.5 }, { "33.3%", true, 0.333 },
        { "1e-7%", true, 1e-9 }, { "0.1%", true, 0.001 }, { "12.5 %", true, 0.125 },
        { "0.01", false, 0 }, { "1", false, 0 }, { "101%", false, 0 }, { "-1%", false, 0 },
        { "100.0001%", false, 0 }, { "", false, 0 }, { "%", false, 0 }, { "5%%", false, 0 },
        { "nan%", false, 0 }, { "1e-400%", false, 0 }, { "1e400%", false, 0 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        double got = -1;
        enum gw_status st = gw_parse_fraction(rows[i].s, &got, &err);

        CHECK_ROW(!st == rows[i].good && (st || got == rows[i].want),
                  "\"%s\": got %d %.17g want %.17g (%s)", rows[i].s, st, got, rows[i].want,
                  err.text);
    }
}

static void test_f64_bool(void)
{
    static const struct { const char *s; bool good; double want; } rows[] = {
        { "1.5", true, 1.5 }, { "-2", true, -2 }, { "0.1", true, 0.1 }, { "1e-9", true, 1e-9 },
        { "123456789.123456789", true, 123456789.123456789 }, { "1.7e308", true, 1.7e308 },
        { "2.2250738585072014e-308", true, 2.2250738585072014e-308 },
        { "1e309", false, 0 }, { "1,5", false, 0 }, { "inf", false, 0 }, { "1s", false, 0 },
        { "", false, 0 }, { "0x1p3", false, 0 }, { "--1", false, 0 },
    };
    static const struct { const char *s; int want; } bools[] = {
        { "yes", 1 }, { "no", 0 }, { "true", 1 }, { "false", 0 }, { "on", 1 }, { "off", 0 },
        { "True", 1 }, { "NO", 0 }, { "1", -1 }, { "", -1 }, { "y", -1 },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        double got = 77;
        enum gw_status st = gw_parse_f64(rows[i].s, &got, NULL);

        CHECK_ROW(!st == rows[i].good && (st || got == rows[i].want), "\"%s\": got %d %.17g",
                  rows[i].s, st, got);
    }
    for (size_t i = 0; i < GW_ARRAY_LEN(bools); i++) {
        bool b = false;
        enum gw_status st = gw_parse_bool(bools[i].s, &b, NULL);

        CHECK_ROW(bools[i].want < 0 ? st == GW_PARAM : !st && b == (bools[i].want == 1),
                  "\"%s\": got %d %d", bools[i].s, st, b);
    }
}

static void test_format(void)
{
    static const struct { int kind; uint64_t v; const char *want; } rows[] = {
        { TIME, UINT64_C(20000000000), "20ms" }, { TIME, 0, "0s" }, { TIME, 1, "1ps" },
        { TIME, UINT64_C(100000000000), "100ms" }, { TIME, UINT64_C(60000000000000), "60s" },
        { TIME, UINT64_C(3600000000000000), "1h" }, { TIME, 1500000, "1.5us" },
        { TIME, UINT64_C(90000000000000), "90s" }, { TIME, 123456789, "123456789ps" },
        { TIME, UINT64_MAX, "18446744073709551615ps" },
        { RATE, UINT64_C(25000000000), "25gbit" }, { RATE, 0, "0bit" }, { RATE, 1, "1bit" },
        { RATE, 1500000000, "1.5gbit" }, { RATE, UINT64_C(400000000000), "400gbit" },
        { RATE, UINT64_C(1000000000000), "1tbit" }, { RATE, 1234, "1234bit" },
        { BYTES, 65536, "64KiB" }, { BYTES, 0, "0B" }, { BYTES, 1514, "1514B" },
        { BYTES, 25000000, "25MB" }, { BYTES, 1536, "1536B" }, { BYTES, 67108864, "64MiB" },
        { BYTES, UINT64_MAX, "18446744073709551615B" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        char buf[48];

        (rows[i].kind == TIME ? gw_format_time : rows[i].kind == RATE ? gw_format_rate
         : gw_format_bytes)(rows[i].v, buf, sizeof buf);
        CHECK_ROW(!strcmp(buf, rows[i].want), "%llu: got %s want %s",
                  (unsigned long long)rows[i].v, buf, rows[i].want);
    }
}

/* Every number reads back to itself, of any size and shape. */
static void test_round_trip(void)
{
    uint64_t x = 1, back;
    char buf[48];

    for (int i = 0; i < 60000; i++) {
        uint64_t v;

        x = gw_mix64(x + UINT64_C(0x9e3779b97f4a7c15));
        v = x >> (i % 64);
        if (i % 3 == 1)
            v = v / 1000000 * 1000000;
        if (i % 3 == 2)
            v &= ~UINT64_C(0xfffff);
        for (int kind = TIME; kind <= BYTES; kind++) {
            (kind == TIME ? gw_format_time : kind == RATE ? gw_format_rate
             : gw_format_bytes)(v, buf, sizeof buf);
            back = ~v;
            if (parse(kind, buf, &back, NULL) || back != v)
                CHECK_ROW(false, "%llu: printed %s, read %llu", (unsigned long long)v, buf,
                          (unsigned long long)back);
        }
    }
    CU_PASS("no row failed");
}

struct conf {
    bool flag;
    uint32_t count, kind;
    uint64_t big, delay_ps, rate_bps, size_bytes;
    double factor, loss;
    const char *name;
    const struct gw_value *value;
    uint64_t limit;
    uint32_t limit32;
};

static const struct gw_param conf_rows[] = {
    { "flag", GW_P_BOOL, offsetof(struct conf, flag), "yes", NULL, NULL, "A flag." },
    { "count", GW_P_U32, offsetof(struct conf, count), "4", "1", "1000", "A count." },
    { "kind", GW_P_CHOICE, offsetof(struct conf, kind), "tree", "ring|tree|direct", NULL, "Kind." },
    { "big", GW_P_U64, offsetof(struct conf, big), "", NULL, NULL, "A large count." },
    { "nic.delay", GW_P_TIME, offsetof(struct conf, delay_ps), "1us", "0", "10s", "Delay." },
    { "nic.rate", GW_P_RATE, offsetof(struct conf, rate_bps), "25gbit", "1bit", "10tbit", "Rate." },
    { "size", GW_P_BYTES, offsetof(struct conf, size_bytes), "64MiB", "1", NULL, "Size." },
    { "factor", GW_P_F64, offsetof(struct conf, factor), "1.5", "-1", "2.5", "Factor." },
    { "loss", GW_P_FRACTION, offsetof(struct conf, loss), "0.01%", "0", "50%", "Loss." },
    { "name", GW_P_STRING, offsetof(struct conf, name), "", NULL, NULL, "Name." },
    { "extra", GW_P_VALUE, offsetof(struct conf, value), "", NULL, NULL, "Anything." },
    { "limit", GW_P_BYTES, offsetof(struct conf, limit), "", "0", "auto", "Limit." },
    { "limit32", GW_P_U32, offsetof(struct conf, limit32), "auto", "0", "auto", "Limit." },
};

/* Reads @text (a YAML map) by conf_rows. The doc is freed: strings in @c are gone behind it. */
static enum gw_status read_conf(const char *text, const char *const *skip, struct conf *c,
                                uint64_t *given, char *name, struct gw_error *err)
{
    struct gw_doc *d = gw_doc_parse(text, strlen(text), "s.yaml", err);
    enum gw_status st;

    if (!d)
        return err->code;
    st = gw_params_read(conf_rows, GW_ARRAY_LEN(conf_rows), c, gw_doc_root(d), skip, "thing",
                        given, err);
    if (!st && name)
        snprintf(name, 32, "%s", c->name ? c->name : "(null)");
    gw_doc_free(d);
    return st;
}

static void test_rows_defaults(void)
{
    struct gw_error err = { GW_OK, "" };
    struct conf c;
    uint64_t given = 99;

    memset(&c, 0x55, sizeof c);
    CU_ASSERT_EQUAL(gw_params_check(conf_rows, GW_ARRAY_LEN(conf_rows), "thing", &err), GW_OK);
    CU_ASSERT_EQUAL(gw_params_read(conf_rows, GW_ARRAY_LEN(conf_rows), &c, NULL, NULL, "thing",
                                   &given, &err), GW_OK);
    CU_ASSERT_EQUAL(given, 0);
    CU_ASSERT(c.flag);
    CU_ASSERT_EQUAL(c.count, 4);
    CU_ASSERT_EQUAL(c.kind, 1);
    CU_ASSERT_EQUAL(c.big, 0);
    CU_ASSERT_EQUAL(c.delay_ps, 1000000);
    CU_ASSERT_EQUAL(c.rate_bps, UINT64_C(25000000000));
    CU_ASSERT_EQUAL(c.size_bytes, 67108864);
    CU_ASSERT(c.factor == 1.5 && c.loss == 0.0001);
    CU_ASSERT_PTR_NULL(c.name);
    CU_ASSERT_PTR_NULL(c.value);
    CU_ASSERT_EQUAL(c.limit, 0);
    CU_ASSERT_EQUAL(c.limit32, UINT32_MAX);
}

static void test_rows_given(void)
{
    static const char *const skip[] = { "other", NULL };
    struct gw_error err = { GW_OK, "" };
    struct conf c;
    uint64_t given;
    char name[32];
    enum gw_status st;

    st = read_conf("flag: no\ncount: 7\nkind: direct\nnic: {rate: 10gbit}\nname: 'x y'\n"
                   "loss: 1%\nextra: [1, 2]\nlimit: auto\nother: {a: 1}\n",
                   skip, &c, &given, name, &err);
    CHECK_ROW(!st, "got \"%s\"", err.text);
    CU_ASSERT(!c.flag);
    CU_ASSERT_EQUAL(c.count, 7);
    CU_ASSERT_EQUAL(c.kind, 2);
    CU_ASSERT_EQUAL(c.rate_bps, UINT64_C(10000000000));
    CU_ASSERT_EQUAL(c.delay_ps, 1000000);
    CU_ASSERT(c.loss == 0.01);
    CU_ASSERT_STRING_EQUAL(name, "x y");
    CU_ASSERT_EQUAL(c.limit, UINT64_MAX);
    CU_ASSERT_EQUAL(given, 1 | 2 | 4 | 32 | 256 | 512 | 1024 | 2048);
}

static void test_rows_bad(void)
{
    static const struct { const char *text, *says; } rows[] = {
        { "count: 0", "s.yaml:1:1: thing: count: \"0\": allowed 1 to 1000" },
        { "count: 1001", "allowed 1 to 1000" },
        { "count: 4294967296", "too large, allowed up to 4294967295" },
        { "flag: no\ncuont: 5",
          "s.yaml:2:1: thing: unknown key \"cuont\"; did you mean \"count\"?" },
        { "zzzzzzz: 5", "known here: flag, count, kind" },
        { "nic: {rat: 5gbit}",
          "s.yaml:1:7: thing: unknown key \"nic.rat\"; did you mean \"rate\"?" },
        { "nic: {rate: 5gbit, zzzzz: 1}", "unknown key \"nic.zzzzz\"; known here: delay, rate" },
        { "nic: 5gbit", "nic: a map of keys is expected" },
        { "nic: {rate: 5}", "nic.rate: \"5\" lacks its unit" },
        { "nic: {rate: [1gbit]}", "not a list" },
        { "nic: {rate: 1gbit}\nnic.rate: 2gbit", "given twice" },
        { "kind: rign", "allowed ring, tree, direct; did you mean \"ring\"?" },
        { "kind: ring|tree", "allowed ring" },
        { "kind:", "no value" },
        { "count: {a: 1}", "not a map" },
        { "factor: 2.6", "allowed -1 to 2.5" },
        { "factor: -1.1", "allowed -1 to 2.5" },
        { "loss: 51%", "allowed 0 to 50%" },
        { "loss: 0.01", "lacks its unit" },
        { "size: 0", "allowed at least 1" },
        { "nic: {delay: 11s}", "allowed 0 to 10s" },
        { "nic: {delay: 1}", "lacks its unit" },
        { "big: auto", "not a count" },
        { "flag: maybe", "write yes or no" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        struct conf c;
        enum gw_status st = read_conf(rows[i].text, NULL, &c, NULL, NULL, &err);

        CHECK_ROW(st == GW_PARAM && strstr(err.text, rows[i].says), "%s: got %d \"%s\" want \"%s\"",
                  rows[i].text, st, err.text, rows[i].says);
    }
}

static void test_rows_required(void)
{
    static const struct gw_param rows[] = {
        { "hosts", GW_P_U32, offsetof(struct conf, count), NULL, "1", NULL, "Number of hosts." },
    };
    struct gw_error err = { GW_OK, "" };
    struct conf c;

    CU_ASSERT_EQUAL(gw_params_read(rows, 1, &c, NULL, NULL, "topology star", NULL, &err), GW_PARAM);
    CHECK_ROW(strstr(err.text, "topology star: hosts must be given, it has no default (number of "
                     "hosts)") != NULL, "got \"%s\"", err.text);
}

static void test_rows_check(void)
{
    static const struct { struct gw_param row; const char *says; } rows[] = {
        { { "a", GW_P_U32, 0, "0", "1", "5", "h" }, "default: \"0\": allowed 1 to 5" },
        { { "a", GW_P_TIME, 0, "5", NULL, NULL, "h" }, "lacks its unit" },
        { { "a", GW_P_TIME, 0, "5s", "1", NULL, "h" }, "bound: \"1\" lacks its unit" },
        { { "a", GW_P_RATE, 0, "", "2gbit", "1gbit", "h" }, "is above" },
        { { "a", GW_P_CHOICE, 0, "b", NULL, NULL, "h" }, "choices must be a list" },
        { { "a", GW_P_CHOICE, 0, "b", "a||c", NULL, "h" }, "choices must be a list" },
        { { "a", GW_P_CHOICE, 0, "b", "a|c", NULL, "h" }, "allowed a, c" },
        { { "a", (enum gw_param_type)77, 0, "b", NULL, NULL, "h" }, "type 77 is unknown" },
        { { "", GW_P_U32, 0, "1", NULL, NULL, "h" }, "its name must have" },
        { { "a", GW_P_VALUE, 0, "1", NULL, NULL, "h" }, "no default" },
        { { "a", GW_P_STRING, 0, "x", "a", NULL, "h" }, "takes no bounds" },
        { { "a", GW_P_FRACTION, 0, "2", NULL, NULL, "h" }, "lacks its unit" },
        { { "a", GW_P_TIME, 0, "1s", NULL, "auto", "h" }, "bound" },
    };
    struct gw_param twice[2] = { conf_rows[0], conf_rows[0] }, many[65];
    struct gw_error err = { GW_OK, "" };
    char names[65][16];

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error e = { GW_OK, "" };
        enum gw_status st = gw_params_check(&rows[i].row, 1, "p", &e);

        CHECK_ROW(st == GW_PARAM && strstr(e.text, rows[i].says),
                  "row %zu: got %d \"%s\" want \"%s\"", i, st, e.text, rows[i].says);
    }
    CU_ASSERT_EQUAL(gw_params_check(twice, 2, "p", &err), GW_PARAM);
    for (int i = 0; i < 65; i++) {
        snprintf(names[i], sizeof names[i], "a%02d", i);
        many[i] = conf_rows[0];
        many[i].name = names[i];
    }
    CU_ASSERT_EQUAL(gw_params_check(many, 64, "p", NULL), GW_OK);
    CU_ASSERT_EQUAL(gw_params_check(many, 65, "p", NULL), GW_PARAM);
}

/* What gw_param_format() writes, gw_param_set() reads back to the same bytes. */
static void test_row_round_trip(void)
{
    static const struct { size_t row; const char *text, *want; } rows[] = {
        { 0, "off", "no" }, { 1, "17", "17" }, { 2, "ring", "ring" }, { 3, "1e6", "1000000" },
        { 4, "1500us", "1.5ms" }, { 5, "0.4tbit", "400gbit" }, { 6, "65536", "64KiB" },
        { 7, "0.1", "0.1" }, { 7, "-0.001", "-0.001" }, { 7, "1e-12", "1e-12" },
        { 7, "0.3333333333333333", "0.3333333333333333" },
        { 8, "0.01%", "0.01%" }, { 8, "1e-7%", "0.0000001%" }, { 8, "0", "0%" },
        { 8, "33.3%", "33.3%" }, { 9, "two words", "two words" }, { 11, "auto", "auto" },
        { 11, "1500", "1500B" }, { 12, "auto", "auto" }, { 12, "5", "5" },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        const struct gw_param *row = &conf_rows[rows[i].row];
        struct gw_error err = { GW_OK, "" };
        struct conf a, b;
        char buf[64];

        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        CHECK_ROW(!gw_param_set(row, &a, rows[i].text, "here", &err), "%s", err.text);
        gw_param_format(row, &a, buf, sizeof buf);
        CHECK_ROW(!strcmp(buf, rows[i].want), "%s: got %s want %s", rows[i].text, buf,
                  rows[i].want);
        CHECK_ROW(!gw_param_set(row, &b, buf, "here", &err), "%s", err.text);
        a.name = b.name = NULL;
        CHECK_ROW(!memcmp(&a, &b, sizeof a), "%s: %s reads back differently", rows[i].text, buf);
    }
}

static void test_param_set_bad(void)
{
    struct gw_error err = { GW_OK, "" };
    struct conf c = { .count = 5 };

    CU_ASSERT_EQUAL(gw_param_set(&conf_rows[1], &c, "9999", "tc line 3", &err), GW_PARAM);
    CU_ASSERT_STRING_EQUAL(err.text, "tc line 3: count: \"9999\": allowed 1 to 1000");
    CU_ASSERT_EQUAL(c.count, 5);
    CU_ASSERT_EQUAL(gw_param_set(&conf_rows[10], &c, "x", NULL, NULL), GW_PARAM);
}

static void test_value_read(void)
{
    static const char text[] = "a: 5ms\nb: [1]\nc: 7\n";
    struct gw_error err = { GW_OK, "" };
    struct gw_doc *d = gw_doc_parse(text, sizeof text - 1, "f.yaml", &err);
    struct gw_value *r;
    uint64_t ps = 0;
    uint32_t n = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    r = gw_doc_root(d);
    CU_ASSERT_EQUAL(gw_value_read(gw_value_get(r, "a"), GW_P_TIME, &ps, &err), GW_OK);
    CU_ASSERT_EQUAL(ps, UINT64_C(5000000000));
    CU_ASSERT_EQUAL(gw_value_read(gw_value_get(r, "c"), GW_P_U32, &n, &err), GW_OK);
    CU_ASSERT_EQUAL(n, 7);
    CU_ASSERT_EQUAL(gw_value_read(gw_value_get(r, "b"), GW_P_U32, &n, &err), GW_PARAM);
    CHECK_ROW(strstr(err.text, "f.yaml:2:1: b: a single value") != NULL, "got \"%s\"", err.text);
    err.code = GW_OK;
    CU_ASSERT_EQUAL(gw_value_read(gw_value_get(r, "c"), GW_P_TIME, &ps, &err), GW_PARAM);
    CHECK_ROW(strstr(err.text, "f.yaml:3:1: c: \"7\" lacks its unit") != NULL, "got \"%s\"",
              err.text);
    gw_doc_free(d);
}

static void test_did_you_mean(void)
{
    static const char *const names[] = { "pfifo", "bfifo", "codel", "fq_codel", "rate", "a", NULL };
    static const struct { const char *word, *want; } rows[] = {
        { "pfifi", "pfifo" }, { "code", "codel" }, { "coedl", "codel" }, { "CODEL", "codel" },
        { "fq-codel", "fq_codel" }, { "raet", "rate" }, { "zzz", NULL }, { "", NULL },
        { "x", NULL }, { "bandwidth", NULL },
    };

    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        const char *got = gw_did_you_mean(rows[i].word, names);

        CHECK_ROW(rows[i].want ? got && !strcmp(got, rows[i].want) : !got, "%s: got %s want %s",
                  rows[i].word, got ? got : "-", rows[i].want ? rows[i].want : "-");
    }
}

static const struct gw_case cases[] = {
    { "numbers with units", test_good },
    { "refused numbers", test_bad },
    { "percentages", test_fraction },
    { "plain numbers and booleans", test_f64_bool },
    { "printing", test_format },
    { "printing reads back", test_round_trip },
    { "rows: defaults", test_rows_defaults },
    { "rows: given", test_rows_given },
    { "rows: refused", test_rows_bad },
    { "rows: required", test_rows_required },
    { "rows: checked themselves", test_rows_check },
    { "rows: format and set", test_row_round_trip },
    { "rows: set refused", test_param_set_bad },
    { "single values", test_value_read },
    { "did you mean", test_did_you_mean },
    { NULL, NULL },
};
const struct gw_suite suite_param = { "param", cases };
