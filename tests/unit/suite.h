/*
 * suite.h - how a unit test file joins the one runner
 *
 * A file test_x.c defines `const struct gw_suite suite_x`; tests/unit/local.mk lists the file in
 * unit_SOURCES and `suite_x` in unit_suites; the runner's list is generated.
 */
#ifndef GW_TESTS_SUITE_H
#define GW_TESTS_SUITE_H

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

struct gw_case {
    const char *name;
    void (*run)(void);
};

struct gw_suite {
    const char *name;
    const struct gw_case *cases;     /* ended by a NULL name */
};

/* A failing row of a table says what, got and want. @cond is evaluated once. */
#define CHECK_ROW(cond, ...)                                                    \
    do {                                                                        \
        int row_ok_ = !!(cond);                                                 \
                                                                                \
        if (!row_ok_) {                                                         \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                     \
            fprintf(stderr, __VA_ARGS__);                                       \
            fputc('\n', stderr);                                                \
        }                                                                       \
        CU_assertImplementation(row_ok_, __LINE__, #cond, __FILE__, "", CU_FALSE); \
    } while (0)

#endif
