/*
 * test_table - tables as text, JSON and CSV
 */
#include "emu/core/table.h"
#include "tests/unit/make_record.h"

#include <math.h>
#include <sys/stat.h>

static struct gw_tables *make_tables(size_t rows)
{
    static const char *const columns[] = { "name", "time_s", "size_bytes", "load_share", "n",
                                           "why" };
    struct gw_tables *all = gw_tables_new();
    struct gw_host host;
    struct gw_analysis a = { .host = &host, .out = all };
    struct gw_table *t;

    memset(&host, 0, sizeof host);
    gw_table_host(&host);
    t = host.table_new(&a, "one", "First table", columns, GW_ARRAY_LEN(columns));
    CU_ASSERT_FATAL(t != NULL);
    for (size_t i = 0; i < rows; i++) {
        struct gw_cell cells[] = {
            gw_cell_text(i ? "b, \"c\"" : "a"), gw_cell_real(i ? 0.0123 : 1.5),
            gw_cell_int(i ? 2500000 : 7), gw_cell_real(i ? (double)NAN : 0.25),
            gw_cell_int(i ? -3 : 12345), gw_cell_null(),
        };

        CU_ASSERT(host.table_row(t, cells) == GW_OK);
    }
    CU_ASSERT(host.table_note(t, "a note that is replaced") == GW_OK);
    CU_ASSERT(host.table_note(t, "what it means") == GW_OK);
    CU_ASSERT(host.table_new(&a, "two", "Second table", columns, 2) != NULL);
    return all;
}

static void check_text(const char *form, enum gw_status (*print)(const struct gw_tables *, FILE *),
                       const char *want)
{
    struct gw_tables *t = make_tables(2);
    char *got = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&got, &n);

    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT(print(t, f) == GW_OK);
    fclose(f);
    CHECK_ROW(!strcmp(got, want), "%s: got\n%swant\n%s", form, got, want);
    free(got);
    gw_tables_free(t);
}

static void test_text(void)
{
    check_text("text", gw_tables_text,
               "First table\n"
               "  name       time    size  load share      n\n"
               "  a         1.5 s     7 B        25 %  12345\n"
               "  b, \"c\"  12.3 ms  2.5 MB           -     -3\n"
               "  what it means\n");
}

/* A link's rate of 0 has no limit; another rate of 0 is 0. Tables without rows are no tables. */
static void test_text_words(void)
{
    static const char *const columns[] = { "rate_bps", "goodput_bps" };
    static const char want[] = "T\n       rate     goodput\n  unlimited     0 bit/s\n"
                               "  10 Gbit/s  500 Mbit/s\n";
    static const double rows[][2] = { { 0, 0 }, { 1e10, 5e8 } };
    struct gw_tables *all = gw_tables_new();
    struct gw_host host;
    struct gw_analysis a = { .host = &host, .out = all };
    struct gw_table *t;
    char *got = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&got, &n);

    CU_ASSERT_FATAL(f != NULL);
    memset(&host, 0, sizeof host);
    gw_table_host(&host);
    t = host.table_new(&a, "t", "T", columns, 2);
    CU_ASSERT(gw_tables_text(all, f) == GW_OK);
    fflush(f);
    CHECK_ROW(!strcmp(got, "(nothing recorded)\n"), "got %s", got);
    rewind(f);
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_cell cells[] = { gw_cell_real(rows[i][0]), gw_cell_real(rows[i][1]) };

        CU_ASSERT(host.table_row(t, cells) == GW_OK);
    }
    CU_ASSERT(gw_tables_text(all, f) == GW_OK);
    fclose(f);
    CHECK_ROW(!strncmp(got, want, sizeof want - 1), "got\n%swant\n%s", got, want);
    free(got);
    gw_tables_free(all);
}

static void test_json(void)
{
    check_text("JSON", gw_tables_json,
               "{\n"
               "  \"one\": [\n"
               "    {\n"
               "      \"name\": \"a\",\n"
               "      \"time_s\": 1.5,\n"
               "      \"size_bytes\": 7,\n"
               "      \"load_share\": 0.25,\n"
               "      \"n\": 12345,\n"
               "      \"why\": null\n"
               "    },\n"
               "    {\n"
               "      \"name\": \"b, \\\"c\\\"\",\n"
               "      \"time_s\": 0.0123,\n"
               "      \"size_bytes\": 2500000,\n"
               "      \"load_share\": null,\n"
               "      \"n\": -3,\n"
               "      \"why\": null\n"
               "    }\n"
               "  ],\n"
               "  \"two\": []\n"
               "}\n");
}

static void test_long_text(void)
{
    struct gw_tables *t = make_tables(100);
    char *got = NULL;
    size_t n = 0, lines = 0;
    FILE *f = open_memstream(&got, &n);

    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT(gw_tables_text(t, f) == GW_OK);
    fclose(f);
    for (const char *p = got; (p = strchr(p, '\n')); p++)
        lines++;
    /* title, head, 20 rows, what is left out, the note */
    CHECK_ROW(lines == 24, "%zu lines", lines);
    CHECK_ROW(strstr(got, "80 more rows") != NULL, "%s", got);
    free(got);
    gw_tables_free(t);
}

static void read_file(const char *path, char *buf, size_t n)
{
    FILE *f = fopen(path, "r");
    size_t got = f ? fread(buf, 1, n - 1, f) : 0;

    buf[got] = 0;
    if (f)
        fclose(f);
}

static void test_csv(void)
{
    static const char want[] = "name,time_s,size_bytes,load_share,n,why\n"
                               "a,1.5,7,0.25,12345,\n"
                               "\"b, \"\"c\"\"\",0.0123,2500000,,-3,\n";
    struct gw_tables *t = make_tables(2);
    struct gw_error err = { 0 };
    char dir[] = "/tmp/gradwire-test-XXXXXX", path[128], text[512];

    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    CU_ASSERT(gw_tables_csv(t, dir, false, &err) == GW_OK);
    snprintf(path, sizeof path, "%s/one.csv", dir);
    read_file(path, text, sizeof text);
    CHECK_ROW(!strcmp(text, want), "got\n%swant\n%s", text, want);
    CU_ASSERT(gw_tables_csv(t, dir, false, &err) == GW_IO);
    CHECK_ROW(strstr(err.text, "exists already") != NULL, "%s", err.text);
    memset(&err, 0, sizeof err);
    CU_ASSERT(gw_tables_csv(t, dir, true, &err) == GW_OK);
    unlink(path);
    snprintf(path, sizeof path, "%s/two.csv", dir);
    read_file(path, text, sizeof text);
    CHECK_ROW(!strcmp(text, "name,time_s\n"), "%s", text);
    unlink(path);
    CU_ASSERT(rmdir(dir) == 0);
    CU_ASSERT(gw_tables_csv(t, "/proc/none", false, &err) == GW_IO);
    CHECK_ROW(strstr(err.text, "/proc/none") != NULL, "%s", err.text);
    gw_tables_free(t);
}

static void test_cells(void)
{
    struct gw_tables *t = make_tables(2);
    const struct gw_cell *c = gw_tables_cell(t, "one", 1, "size_bytes");

    CHECK_ROW(c && c->kind == GW_CELL_INT && c->i == 2500000, "cell %p", (const void *)c);
    CU_ASSERT(gw_tables_cell(t, "one", 2, "size_bytes") == NULL);
    CU_ASSERT(gw_tables_cell(t, "one", 0, "size") == NULL);
    CU_ASSERT(gw_tables_cell(t, "none", 0, "size_bytes") == NULL);
    gw_tables_free(t);
}

static const struct gw_case cases[] = {
    { "text", test_text },
    { "words in text", test_text_words },
    { "long tables", test_long_text },
    { "JSON", test_json },
    { "CSV", test_csv },
    { "single cells", test_cells },
    { NULL, NULL },
};

extern const struct gw_suite suite_table;
const struct gw_suite suite_table = { "table", cases };
