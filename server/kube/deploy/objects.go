package deploy

import (
	"bytes"
	"embed"
	"io/fs"

	"cupola/server/kube"
	"cupola/server/kube/access"
)

//go:embed namespace.yaml account.yaml services.yaml daemon.yaml
var files embed.FS

// The names of the objects.
const (
	Namespace = "cupola-system" // the daemon's; the apps' is access.Namespace
	name      = "cupola"        // of the StatefulSet, and of the Service of API and router
)

// Objects are those that the kustomization has, what others need first.
func Objects() ([]kube.Object, error) {
	all, err := access.Objects()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"namespace.yaml", "account.yaml", "services.yaml", "daemon.yaml"} {
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
