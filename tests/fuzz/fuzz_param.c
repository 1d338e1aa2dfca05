/*
 * fuzz_param - any text as a number with a unit, and as a value of every type of option row
 *
 * What is read is printed and read again: it must be the same number.
 */
#include <gradwire/param.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct conf {
    bool flag;
    uint32_t u32, choice;
    uint64_t u64, time_ps, rate_bps, size_bytes, limit_bytes;
    double f64, fraction;
};

static const struct gw_param rows[] = {
    { "flag", GW_P_BOOL, offsetof(struct conf, flag), "", NULL, NULL, "" },
    { "u32", GW_P_U32, offsetof(struct conf, u32), "", NULL, NULL, "" },
    { "choice", GW_P_CHOICE, offsetof(struct conf, choice), "", "ring|tree|x", NULL, "" },
    { "u64", GW_P_U64, offsetof(struct conf, u64), "", NULL, NULL, "" },
    { "time", GW_P_TIME, offsetof(struct conf, time_ps), "", "0", "1000h", "" },
    { "rate", GW_P_RATE, offsetof(struct conf, rate_bps), "", NULL, NULL, "" },
    { "bytes", GW_P_BYTES, offsetof(struct conf, size_bytes), "", "1", NULL, "" },
    { "limit", GW_P_BYTES, offsetof(struct conf, limit_bytes), "", "0", "auto", "" },
    { "f64", GW_P_F64, offsetof(struct conf, f64), "", "-1e300", NULL, "" },
    { "fraction", GW_P_FRACTION, offsetof(struct conf, fraction), "", NULL, NULL, "" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < GW_ARRAY_LEN(rows); i++) {
        struct gw_error err = { GW_OK, "" };
        struct conf a, b;
        char buf[64];

        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        if (gw_param_set(&rows[i], &a, text, "fuzz", &err)) {
            if (!err.text[0])
                abort();                         /* a refusal without a sentence */
            continue;
        }
        gw_param_format(&rows[i], &a, buf, sizeof buf);
        if (gw_param_set(&rows[i], &b, buf, "again", &err) || memcmp(&a, &b, sizeof a) != 0) {
            fprintf(stderr, "%s: \"%s\" was printed as \"%s\": %s\n", rows[i].name, text, buf,
                    err.text);
            abort();
        }
    }
    free(text);
    return 0;
}
