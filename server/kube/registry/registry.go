package registry

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/oci"
	images "cupola/rootfs/registry"
	"cupola/runtime/durable"
	"cupola/runtime/fault"
)

// Source has images, by the digests of their manifests.
type Source interface {
	Image(digest string) (images.Image, error)
	OpenLayer(image, layer string) (*os.File, error)
}

// Registry is what a cluster's nodes pull from.
type Registry struct {
	Source  Source
	Address string // host:port, as nodes reach it
	// Stagings finds the staging of a cell's container; nil: there are none. Its errors are ErrNotKnown and ErrNoStaging.
	Stagings func(cell, guid string) (Staging, error)

	key []byte
}

// Open reads the key that passwords are made with from a directory. The first time it is made: pods keep their passwords for as
// long as they are there.
func (r *Registry) Open(dir string) error {
	file := filepath.Join(dir, "registry-key")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text() + rand.Text())
		if err = durable.MkdirAll(dir, 0o700); err == nil {
			err = durable.Write(file, text, 0o600)
		}
	}
	r.key = text
	return err
}

// repository begins the names of all images; after it comes the digest in hex.
const repository = "droplets/"

// Reference names an image for the nodes, by its digest.
func (r *Registry) Reference(digest string) string {
	return r.Address + "/" + repository + strings.TrimPrefix(digest, "sha256:") + "@" + digest
}

// Password is that of the user who is named like a cell.
func (r *Registry) Password(cell string) string {
	m := hmac.New(sha256.New, r.key)
	_, _ = io.WriteString(m, cell)
	return hex.EncodeToString(m.Sum(nil))
}

// Handler answers below /v2/, and to stagers.
func (r *Registry) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /v2/"+repository+"{image}/manifests/{digest}", r.manifest)
	mux.HandleFunc("GET /v2/"+repository+"{image}/blobs/{digest}", r.blob)
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry can only be pulled from")
			return
		}
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "repository name not known to registry")
	})
	stagers := r.stagingHandler()
	return fault.Handler("registry", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, stagings) {
			stagers.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		user, password, _ := req.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(password), []byte(r.Password(user))) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="cupola"`)
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
			return
		}
		mux.ServeHTTP(w, req)
	}))
}

func (r *Registry) manifest(w http.ResponseWriter, req *http.Request) {
	image, err := r.Source.Image("sha256:" + req.PathValue("image"))
	if err != nil || req.PathValue("digest") != image.Digest {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown to registry")
		return
	}
	var m struct{ MediaType string }
	_ = json.Unmarshal(image.Manifest, &m) // our own
	write(w, image.Digest, m.MediaType, image.Manifest)
}

func (r *Registry) blob(w http.ResponseWriter, req *http.Request) {
	digest, of := req.PathValue("digest"), "sha256:"+req.PathValue("image")
	image, err := r.Source.Image(of)
	if err == nil && digest == oci.Digest(image.Config) {
		write(w, digest, "application/octet-stream", image.Config)
		return
	}
	f, err := r.Source.OpenLayer(of, digest)
	if err != nil {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown to registry")
		return
	}
	defer f.Close()
	head(w, digest, "application/octet-stream")
	http.ServeContent(w, req, "", time.Time{}, f) // with ranges, for a pull that goes on
}

func head(w http.ResponseWriter, digest, kind string) {
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Type", kind)
}

func write(w http.ResponseWriter, digest, kind string, text []byte) {
	head(w, digest, kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

// refuse answers with an error in the specification's form.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}
