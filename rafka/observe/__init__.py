"""What can be seen of a broker from outside while it works: spans of OpenTelemetry.

    names       what the span of an op is called, in a gateway and in a broker
    spans       makes them, around a link and for what no single op does
    exporting   sends them where the OTEL_* variables say, for a process of rafka's own

Nothing here is on the way of a request unless a tracer is configured: the link between
gateway and broker is then put into another that makes a span around each op, and where
none is configured it is left as it is. OpenTelemetry is imported only then, too.
"""
