check_scripts += tests/cli/run.sh
EXTRA_DIST += tests/cli/bad_studies.sh tests/cli/output.sh tests/cli/verbs.sh
EXTRA_DIST += tests/cli/tc.sh
