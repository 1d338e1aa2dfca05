# Scenarios tests/scenario/*.yaml are found by themselves; files that they read go into EXTRA_DIST.
check_scripts += tests/scenario/examples
