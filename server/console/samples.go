package console

import (
	"archive/zip"
	"encoding/json"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"cupola/examples"
)

// sample is an app that the console offers to push.
type sample struct {
	Name     string `json:"name"`
	About    string `json:"about"` // the README's first sentence
	Manifest string `json:"manifest"`
}

// samples lists the embedded apps. They hold nothing secret: no session is needed.
func (c *Console) samples(w http.ResponseWriter, r *http.Request) {
	var all []sample
	for _, name := range examples.Names {
		source := examples.Source(name)
		manifest, err := fs.ReadFile(source, "manifest.yml")
		if err != nil {
			c.fail(w, r, err)
			return
		}
		readme, err := fs.ReadFile(source, "README.md")
		if err != nil {
			c.fail(w, r, err)
			return
		}
		all = append(all, sample{name, firstSentence(string(readme)), string(manifest)})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	_ = json.NewEncoder(w).Encode(all) // the client may be gone
}

// firstSentence is the first one below a text's title, without Markdown's marks.
func firstSentence(text string) string {
	_, rest, _ := strings.Cut(text, "\n\n")
	paragraph, _, _ := strings.Cut(rest, "\n\n")
	sentence := strings.Join(strings.Fields(strings.ReplaceAll(paragraph, "`", "")), " ")
	if i := strings.Index(sentence, ". "); i >= 0 {
		sentence = sentence[:i+1]
	}
	return sentence
}

// sampleZip is the source of one of them, as cf push would upload it.
func (c *Console) sampleZip(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSuffix(r.PathValue("name"), ".zip")
	if !slices.Contains(examples.Names, name) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/zip")
	z := zip.NewWriter(w)
	if err := z.AddFS(examples.Source(name)); err == nil {
		_ = z.Close() // the client may be gone
	}
}
