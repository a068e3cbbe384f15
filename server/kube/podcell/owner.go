package podcell

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/durable"
)

// OwnerIn tells the pods of a data directory from those of another one, whose cells may have the
// same names. It is made once, and kept in dir.
func OwnerIn(dir string) (string, error) {
	file := filepath.Join(dir, "owner")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(strings.ToLower(rand.Text()))
		if err = durable.MkdirAll(dir, 0o700); err == nil {
			err = durable.Write(file, text, 0o600)
		}
	}
	return strings.TrimSpace(string(text)), err
}
