package script

import (
	"os"
	"testing"

	"cupola/test/e2e"
)

func TestMain(m *testing.M) {
	if isPlugin(os.Args) {
		os.Exit(runPlugin(os.Args[1], os.Args[2:]))
	}
	e2e.Main(m)
}
