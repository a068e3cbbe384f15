package jvm

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf16"

	"cupola/runtime/contract"
)

// bundle is where a container's trusted certificates are.
const bundle = "/etc/ssl/certs/ca-certificates.crt"

// trustStore writes a key store of the certificates that this container trusts, and returns its path: those of the stack, those that
// the operator adds to all containers, and the CA of the instance's own certificate. A JVM reads none of them by itself.
func trustStore(path string) (string, error) {
	files := []string{bundle}
	if dir := os.Getenv(contract.EnvCertificates); dir != "" {
		// Next to the files is the directory that holds their versions.
		more, _ := filepath.Glob(filepath.Join(dir, "*"))
		files = append(files, slices.DeleteFunc(more, isDirectory)...)
	}
	var all [][]byte
	for _, file := range files {
		certificates, err := readCertificates(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		all = append(all, certificates...)
	}
	own, err := readCertificates(os.Getenv("CF_INSTANCE_CERT"))
	if err == nil && len(own) > 1 {
		all = append(all, own[1:]...) // the first is the instance's
	}
	if len(all) == 0 {
		return "", errors.New("the container has no certificates")
	}
	slices.SortFunc(all, bytes.Compare)
	all = slices.CompactFunc(all, bytes.Equal)
	return path, os.WriteFile(path, keyStore(all), 0o644)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readCertificates returns the certificates of a PEM file, in DER. What is not a certificate is left out.
func readCertificates(file string) ([][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return all, nil
		}
		if text = rest; block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, block.Bytes)
		}
	}
}

// Java's key store of type JKS (sun.security.provider.JavaKeyStore).
const (
	storeMagic   = 0xfeedfeed
	storeVersion = 2
	storeTrusted = 2 // an entry that is a certificate
	storeSalt    = "Mighty Aphrodite"
	// storePassword is what Java's own key stores have. It protects nothing: certificates are public.
	storePassword = "changeit"
)

// keyStore returns a key store of trusted certificates.
func keyStore(certificates [][]byte) []byte {
	var b bytes.Buffer
	number := func(n uint32) { _ = binary.Write(&b, binary.BigEndian, n) }
	text := func(s string) {
		_ = binary.Write(&b, binary.BigEndian, uint16(len(s)))
		b.WriteString(s)
	}
	number(storeMagic)
	number(storeVersion)
	number(uint32(len(certificates)))
	for i, c := range certificates {
		number(storeTrusted)
		text("container-" + strconv.Itoa(i))
		number(0) // the time of creation, in two halves
		number(0)
		text("X.509")
		number(uint32(len(c)))
		b.Write(c)
	}
	digest := sha1.New()
	for _, unit := range utf16.Encode([]rune(storePassword)) {
		digest.Write([]byte{byte(unit >> 8), byte(unit)})
	}
	digest.Write([]byte(storeSalt))
	digest.Write(b.Bytes())
	return digest.Sum(b.Bytes())
}
