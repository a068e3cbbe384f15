package uaa

import (
	"os"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// TestMain has passwords hashed fast: the tests hash hundreds.
func TestMain(m *testing.M) {
	cost = bcrypt.MinCost
	os.Exit(m.Run())
}
