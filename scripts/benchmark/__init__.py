"""The same work for redis-server and for this server, in turns, in one run.

Laws:
1. Both servers get equal bytes from one generator, on the same cores, in alternating rounds.
2. What is counted has arrived: replies are compared with what they must be, deliveries are counted to the last byte.
3. The generator must not be what is measured: it sends prebuilt buffers and lets the kernel drop what subscribers
   receive. How busy the server was stands beside every rate, so that a doubt can be answered.
4. A server that dies and a shape that fails are reported; nothing is left running.
"""
