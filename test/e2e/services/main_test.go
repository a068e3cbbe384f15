package services

import (
	"testing"

	"cupola/test/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
