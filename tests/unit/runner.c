/*
 * runner - runs the unit suites under CUnit
 *
 * runner [SUITE...]: all suites of the generated list, or those named. CUnit prints what failed and
 * a summary; it has no opinion on the exit status, so that is ours: 0 all passed, 1 something
 * failed or nothing ran, 2 a suite of that name does not exist.
 */
#include "tests/unit/suite.h"

#include <CUnit/Basic.h>
#include <stdbool.h>

extern const struct gw_suite *const gw_suites[];     /* suites.c, generated                     */

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return true;
    return argc < 2;
}

static bool exists(const char *name)
{
    for (size_t i = 0; gw_suites[i]; i++)
        if (!strcmp(gw_suites[i]->name, name))
            return true;
    return false;
}

static bool add_suite(const struct gw_suite *s)
{
    CU_pSuite suite = CU_add_suite(s->name, NULL, NULL);

    if (!suite)
        return false;
    for (const struct gw_case *c = s->cases; c->name; c++)
        if (!CU_add_test(suite, c->name, c->run))
            return false;
    return true;
}

/* Registers what was asked for. False: CUnit refused (its sentence says why). */
static bool add_wanted(int argc, char **argv)
{
    for (size_t i = 0; gw_suites[i]; i++)
        if (wanted(gw_suites[i]->name, argc, argv) && !add_suite(gw_suites[i])) {
            fprintf(stderr, "runner: suite %s: %s\n", gw_suites[i]->name, CU_get_error_msg());
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    unsigned failed, ran;

    for (int i = 1; i < argc; i++)
        if (!exists(argv[i])) {
            fprintf(stderr, "runner: there is no suite %s\n", argv[i]);
            return 2;
        }
    if (CU_initialize_registry() != CUE_SUCCESS || !add_wanted(argc, argv))
        return 1;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    setvbuf(stdout, NULL, _IOLBF, 0);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    ran    = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failed || !ran ? 1 : 0;
}
