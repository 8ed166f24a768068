"""The answers of rafka beside those of Apache Kafka, scenario by scenario."""
