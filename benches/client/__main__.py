"""`make bench-client`."""

from benches.client import consuming, producing

producing.main()
consuming.main()
