"""The messages, one module an API: its request, its response, and the structs of both.

Apache's names; the attributes are those of Apache's JSON in snake case. What a module is for stands
at its head, what a field is for in Kafka's protocol guide.
"""
