package access

import (
	"bytes"
	"embed"
	"io/fs"

	"cupola/server/kube"
)

//go:embed namespace.yaml account.yaml namespaced.yaml nodes.yaml
var files embed.FS

// The names of the objects.
const (
	Namespace = "cupola"
	Account   = "cupola" // a ServiceAccount
)

// Objects are those that the kustomization has, the namespace first.
func Objects() (all []kube.Object, err error) {
	for _, name := range []string{"namespace.yaml", "account.yaml", "namespaced.yaml", "nodes.yaml"} {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		objects, err := kube.Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}
