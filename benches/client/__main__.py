"""`make bench-client`."""

from benches.client import consuming

consuming.main()
