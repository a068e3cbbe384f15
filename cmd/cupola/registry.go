package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"cupola/rootfs/registry"
)

// registryFlags say how the registries of images are spoken to.
type registryFlags struct {
	Mirrors map[string][]string `help:"Mirrors to try first for a registry's images; they get no credentials." placeholder:"REGISTRY=HOST,..." env:"CUPOLA_MIRRORS"`
	trustFlags
}

func (f registryFlags) registries() (registry.Config, error) {
	r, err := f.trustFlags.registries()
	r.Mirrors = f.Mirrors
	return r, err
}

// trustFlags say which registries are trusted.
type trustFlags struct {
	PlainHTTP  []string `help:"Registries to use without TLS, besides those on this machine." name:"plain-http" placeholder:"HOST:PORT" env:"CUPOLA_PLAIN_HTTP"`
	RegistryCA []string `help:"PEM files of CAs to trust for registries, besides the machine's CAs." name:"registry-ca" placeholder:"FILE" env:"CUPOLA_REGISTRY_CA"`
}

func (f trustFlags) registries() (registry.Config, error) {
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
