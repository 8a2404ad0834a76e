# torch==2.14.*
import time

time.sleep(600)
