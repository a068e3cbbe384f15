// Command client is an app that uses the services that it is bound to. A request's path is
// the name of the service, its body what to do there.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// credentials are those of a service instance.
type credentials struct {
	URI, Username, Password, Host string
	Port                          int
	Database                      string
	TLS                           struct{ Required bool }
	AccessKey                     string `json:"access_key_id"`
	SecretKey                     string `json:"secret_access_key"`
}

// trust verifies the service by the CA that every app finds in its container.
func (c credentials) trust() (*tls.Config, error) {
	pem, err := os.ReadFile(filepath.Join(os.Getenv("CF_SYSTEM_CERT_PATH"), "trusted-ca-1.crt"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots, ServerName: c.Host}, err
}

// do are what services do with a request.
var do = map[string]func(ctx context.Context, c credentials, request string) (string, error){"mysql": query, "smtp": send, "nats": stream, "rabbitmq": queue, "s3": object, "memcached": cache}

func main() {
	var bound map[string][]struct{ Credentials credentials }
	if err := json.Unmarshal([]byte(os.Getenv("VCAP_SERVICES")), &bound); err != nil {
		log.Print(err)
	}
	http.HandleFunc("/{service}", func(w http.ResponseWriter, r *http.Request) {
		service := r.PathValue("service")
		body, err := io.ReadAll(r.Body)
		if err != nil || len(bound[service]) == 0 {
			http.Error(w, fmt.Sprintf("not bound to %s: %v", service, err), http.StatusNotFound)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
		defer cancel()
		c := bound[service][0].Credentials
		c.TLS.Required = c.TLS.Required && !r.URL.Query().Has("plain")
		answer, err := do[service](ctx, c, string(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, answer)
	})
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
