package uaa

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// pages are the templates of what browsers get.
var pages = template.Must(template.New("").Parse(pageText))

// page is one that a browser is shown.
type page struct {
	name    string // the template
	cookies []*http.Cookie

	Title  string
	Fault  string   // why it is shown again
	User   string   // who is logged in
	Secret string   // that the form brings back
	Next   string   // what the form is to lead to
	Client string   // the client that requests access
	To     string   // the host that is gone to next
	Scopes []string // what is asked for
	Code   string
}

// Style is the style sheet, which the page holds: there is nothing else to load.
func (p page) Style() template.CSS { return template.CSS(pageStyle) } //nolint:gosec // a constant

// redirect is an answer without a body.
type redirect struct {
	to      string
	cookies []*http.Cookie
}

func (to redirect) write(w http.ResponseWriter, status int) {
	for _, c := range to.cookies {
		http.SetCookie(w, c)
	}
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", to.to)
	w.WriteHeader(status)
}

// write sends the page. It may not load or run anything, nor be framed.
func (p page) write(w http.ResponseWriter, status int) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, "page", p); err != nil {
		return err
	}
	for _, c := range p.cookies {
		http.SetCookie(w, c)
	}
	sum := sha256.Sum256([]byte(pageStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // a form without an Origin would look like another site's
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	return err
}

// Body is the template of what is in the page.
func (p page) Body() (template.HTML, error) {
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, p.name, p)
	return template.HTML(b.String()), err //nolint:gosec // escaped by the template
}
