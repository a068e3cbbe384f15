package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"
)

// credentials are the instance's certificate and key. They are read through the
// directory that the link leads to, which has both of one pair.
const credentials = "/etc/cf-instance-credentials/..data"

// rotation reads the pair over and over until there is another one. It says
// what is wrong with one that it finds.
func rotation(limit time.Duration) error {
	var first *x509.Certificate
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		pair, err := readPair()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was replaced in between
		}
		if err != nil {
			return err
		}
		switch now := time.Now(); {
		case now.After(pair.Leaf.NotAfter):
			return fmt.Errorf("%d ended at %s, and is still there at %s", pair.Leaf.SerialNumber, pair.Leaf.NotAfter, now)
		case first == nil:
			first = pair.Leaf
		case !first.Equal(pair.Leaf):
			if !pair.Leaf.NotAfter.After(first.NotAfter) {
				return fmt.Errorf("the second ends at %s, the first at %s", pair.Leaf.NotAfter, first.NotAfter)
			}
			return nil
		}
	}
	return fmt.Errorf("the same after %s", limit)
}

func readPair() (tls.Certificate, error) {
	dir, err := os.OpenRoot(credentials)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer dir.Close()
	cert, err := dir.ReadFile("instance.crt")
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := dir.ReadFile("instance.key")
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// rotated answers when the pair was replaced, or with what is wrong.
func rotated(w http.ResponseWriter, _ *http.Request) {
	if err := rotation(time.Minute); err != nil {
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "replaced")
}
