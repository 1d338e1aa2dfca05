# Helpers for people who change gradwire; check-includes is a test too.
check_scripts += tools/check-includes
EXTRA_DIST    += tools/new-plugin tools/count-metrics
