// Command client is an app that uses the services that it is bound to. A request's path is
// the name of the service, its body what to do there.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

// credentials are those of a service instance.
type credentials struct {
	URI, Username, Password, Host string
	Port                          int
	Database                      string
}

// do are what services do with a request.
var do = map[string]func(ctx context.Context, c credentials, request string) (string, error){"mysql": query, "smtp": send, "nats": stream, "rabbitmq": queue}

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
		answer, err := do[service](ctx, bound[service][0].Credentials, string(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, answer)
	})
	log.Fatal(http.ListenAndServe(":"+os.Getenv("PORT"), nil))
}
