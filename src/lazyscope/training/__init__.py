"""`simulate`: N, d and n finite. Data are drawn, a network is trained on them, and tested."""
