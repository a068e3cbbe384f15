package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// fetch gets url= and says what it got, and whose certificate it saw. It trusts whom
// the container should trust, and shows the instance's own certificate.
func fetch(w http.ResponseWriter, r *http.Request) {
	pool := x509.NewCertPool()
	files, _ := filepath.Glob(os.Getenv("CF_SYSTEM_CERT_PATH") + "/*.crt")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(w, err)
			return
		}
		pool.AppendCertsFromPEM(text)
	}
	own, err := readPair()
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}}}}
	res, err := client.Get(r.FormValue("url"))
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		fmt.Fprintln(w, err)
		return
	}
	if res.TLS != nil {
		fmt.Fprintf(w, "%s: ", res.TLS.PeerCertificates[0].Subject.CommonName)
	}
	fmt.Fprintf(w, "%d %s", res.StatusCode, body)
}
