package apply

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// serviceAccount is where a pod finds how the cluster knows it.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// inCluster is the cluster that this process is a pod of, as its service account, and the namespace of the pod. dir has the
// account's token, which is read again when the cluster renews it.
func inCluster(dir string) (*rest.Config, string, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, "", errors.New("find the cluster: this process is not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
	}
	namespace, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace of the service account: %w", err)
	}
	return &rest.Config{Host: "https://" + net.JoinHostPort(host, port), BearerTokenFile: filepath.Join(dir, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "ca.crt")}}, strings.TrimSpace(string(namespace)), nil
}
