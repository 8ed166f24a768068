"""Bytes and messages: Kafka's wire protocol, declared once for all versions.

`apis/` has one file per API, in the language of `schema`. `api.Api` gives classes and
codecs for a declaration; `decoding` and `encoding` write their source, once for each
version and class that is asked for. `frame` has lengths and headers. `convert` offers
the codecs as hooks of a cattrs converter.

This room knows bytes and objects. It knows no op, no socket, no clock.
"""
