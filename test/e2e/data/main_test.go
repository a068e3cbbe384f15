package data

import (
	"testing"

	"cupola/test/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// prepared are the services whose servers need a stack. One is built for all tests that take any of them.
var prepared = []string{"postgres", "mysql", "redis", "nats", "rabbitmq", "smtp"}
