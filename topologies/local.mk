# topologies: files are appended to the lists of Makefile.am here.

libgwplug_la_SOURCES += topologies/topo_star.c
builtin_plugins      += gw_topology_star
libgwplug_la_SOURCES += topologies/topo_dumbbell.c
builtin_plugins      += gw_topology_dumbbell
libgwplug_la_SOURCES += topologies/topo_two_site.c
builtin_plugins      += gw_topology_two_site
libgwplug_la_SOURCES += topologies/topo_leaf_spine.c
builtin_plugins      += gw_topology_leaf_spine
libgwplug_la_SOURCES += topologies/topo_fat_tree.c
builtin_plugins      += gw_topology_fat_tree
libgwplug_la_SOURCES += topologies/topo_pair.c
builtin_plugins      += gw_topology_pair
libgwplug_la_SOURCES += topologies/topo_graph.c
builtin_plugins      += gw_topology_graph
libgwplug_la_SOURCES += topologies/topo_file.c
builtin_plugins      += gw_topology_file

dist_graphs_DATA += topologies/graphs/abilene.gml topologies/graphs/geant2012.graphml \
	topologies/graphs/nsfnet.gml topologies/graphs/README.md
