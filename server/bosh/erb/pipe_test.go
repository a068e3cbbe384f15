package erb

import "os"

// pipe is a file to read content from, and what writes it.
func pipe(content []byte) (*os.File, func(), error) {
	r, w, err := os.Pipe()
	return r, func() { w.Write(content); w.Close() }, err
}
