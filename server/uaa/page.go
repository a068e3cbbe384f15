package uaa

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html"
	"net/http"
	"strings"

	"cupola/runtime/pattern"
)

// The HTML of pages and of their parts, with names in braces where values go. It
// is not html/template's, which keeps all exported methods of the daemon's types
// in its binary: see package cli. All values are text or attributes in double
// quotes, which html.EscapeString is enough for.
//
//go:embed page/*.html
var parts embed.FS

//go:embed page/page.css
var pageStyle string

// page is one that a browser is shown.
type page struct {
	name    string // of its part
	cookies []*http.Cookie

	Title  string
	Fault  string   // why it is shown again
	User   string   // who is logged in
	Secret string   // that the form brings back
	Next   string   // where the form leads
	Client string   // the client that requests access
	To     string   // the host that is gone to next
	Scopes []string // what is asked for
	Code   string
}

// markup is HTML, with what users say escaped.
type markup string

// values are what goes into a part, by name: text, which is escaped, or markup.
type values map[string]any

var place = pattern.Lazy(`\{[A-Z][a-z]+\}`)

// fill returns a part with its values. A name that has none stays as it is, which a
// test looks for in each page.
func fill(part string, v values) markup {
	text, _ := parts.ReadFile("page/" + part + ".html")
	return markup(place().ReplaceAllStringFunc(strings.TrimSuffix(string(text), "\n"), func(at string) string {
		switch value := v[strings.Trim(at, "{}")].(type) {
		case markup:
			return string(value)
		case string:
			return html.EscapeString(value)
		}
		return at
	}))
}

// html is the whole page.
func (p page) html() markup {
	guard := fill("secret", values{"Secret": p.Secret})
	var fault, scopes markup
	if p.Fault != "" {
		fault = fill("alert", values{"Text": p.Fault})
	}
	for _, s := range p.Scopes {
		scopes += fill("scope", values{"Name": s})
	}
	return fill("page", values{"Title": p.Title, "Style": markup(pageStyle), "Body": fill(p.name, values{
		"Guard": guard, "Who": fill("who", values{"Guard": guard, "User": p.User}), "Fault": fault, "Scopes": scopes,
		"Next": p.Next, "Client": p.Client, "To": p.To, "Code": p.Code,
	})})
}

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
	_, err := w.Write([]byte(p.html()))
	return err
}
