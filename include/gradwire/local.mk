# Public headers: all that a plugin may see. tools/check-includes compares this with the folder.
gwincludedir = $(includedir)/gradwire
gwinclude_HEADERS = \
	include/gradwire/analysis.h \
	include/gradwire/base.h \
	include/gradwire/channel.h \
	include/gradwire/convert.h \
	include/gradwire/engine.h \
	include/gradwire/gradwire.h \
	include/gradwire/packet.h \
	include/gradwire/param.h \
	include/gradwire/plugin.h \
	include/gradwire/qdisc.h \
	include/gradwire/record.h \
	include/gradwire/rng.h \
	include/gradwire/tc.h \
	include/gradwire/topology.h \
	include/gradwire/traffic.h \
	include/gradwire/transport.h

# Shared algorithms, as headers.
gwalgincludedir = $(includedir)/gradwire/alg
gwalginclude_HEADERS = $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/include/gradwire/alg/*.h))
