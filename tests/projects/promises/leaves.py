# torch==2.14.*
raise SystemExit(0)
