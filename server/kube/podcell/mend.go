package podcell

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"cupola/server/kube/apply"
)

// plain is why a request failed, without the URL of the request but for its host.
func plain(err error) error {
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	if at, parseErr := url.Parse(of.URL); parseErr == nil {
		return fmt.Errorf("%s: %w", at.Host, of.Err)
	}
	return of.Err
}

// mendOf says what an operator does about a cluster that refuses what the cell asks, or does not answer.
func mendOf(err error) string {
	switch {
	case apply.Unauthorized(err):
		return "put a new token or certificate into the kubeconfig, and restart the daemon: kubectl -n NAMESPACE create token cupola --duration 8760h"
	case apply.Refused(err):
		return "kubectl apply -k server/kube/access   # a namespace, and an account with the rights that a cell needs; see docs/kubernetes.md"
	case errors.Is(err, fs.ErrNotExist):
		return "give --kubernetes a kubeconfig that is there"
	}
	return "let this machine reach the API server that the kubeconfig names: kubectl --kubeconfig FILE get pods"
}
