graph [
  directed 0
  node [ id 0 label "A" Latitude 10.5 Longitude -3.25 Internal 1 ]
  node [ id 1 label "None" lat 11 lon 4 kind "host" ]
  node [ id 2 label "None" hyperedge 1 ]
  edge [ source 0 target 1 LinkSpeed "10" LinkSpeedUnits "G" LinkSpeedRaw 10000000000.0 ]
  edge [ source 0 target 1 LinkType "OC-192" LinkLabel "OC-192c" dist 12.5 ]
  edge [ source 1 target 2 LinkLabel "STM-64x2 1-20Gbps" weight 2.5 mtu 9000 loss "0.1%" ]
]
