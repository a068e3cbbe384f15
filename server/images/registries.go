package images

import (
	"crypto/x509"
	"fmt"
	"os"

	"cupola/rootfs/registry"
)

// Registries say how the daemon speaks to registries of images. Its fields are
// flags of cupola serve.
type Registries struct {
	Mirrors map[string][]string `help:"Mirrors to try first for a registry's images; they get no credentials." placeholder:"REGISTRY=HOST,..." env:"CUPOLA_MIRRORS"`
	Trust
}

// Open reads the files that they name.
func (r Registries) Open() (registry.Config, error) {
	out, err := r.Trust.Open()
	out.Mirrors = r.Mirrors
	return out, err
}

// Trust says which registries are trusted.
type Trust struct {
	PlainHTTP  []string `help:"Registries to use without TLS, besides those on this machine." name:"plain-http" placeholder:"HOST:PORT" env:"CUPOLA_PLAIN_HTTP"`
	RegistryCA []string `help:"PEM files of CAs to trust for registries, besides the machine's CAs." name:"registry-ca" placeholder:"FILE" env:"CUPOLA_REGISTRY_CA"`
}

// Open reads the files that it names.
func (f Trust) Open() (registry.Config, error) {
	r := registry.Config{PlainHTTP: f.PlainHTTP}
	if len(f.RegistryCA) == 0 {
		return r, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return r, err
	}
	for _, name := range f.RegistryCA {
		text, err := os.ReadFile(name)
		if err != nil {
			return r, fmt.Errorf("--registry-ca: %w", err)
		}
		if !pool.AppendCertsFromPEM(text) {
			return r, fmt.Errorf("--registry-ca: %s holds no certificate", name)
		}
	}
	r.RootCAs = pool
	return r, nil
}
