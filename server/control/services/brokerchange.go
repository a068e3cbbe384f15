package services

import (
	"encoding/json"
	"net/url"
	"strings"

	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
)

// BrokerChange is what to register a service broker with, or to change of one.
type BrokerChange struct {
	Name           change.Field[string]          `json:"name"`
	URL            change.Field[string]          `json:"url"`
	Authentication change.Field[json.RawMessage] `json:"authentication"`
	Metadata       *change.Metadata              `json:"metadata"`
	Relationships  *struct {
		Space *change.ToOne `json:"space"`
	} `json:"relationships"`
}

// Validate lists what is wrong with a request alone.
func (r BrokerChange) Validate() []string {
	messages := control.Must(!r.Name.Set || r.Name.Null || r.Name.V != "", "Name must not be empty string")
	if r.URL.Set && !r.URL.Null {
		messages = append(messages, brokerURLFaults(r.URL.V)...)
	}
	if r.Authentication.Set && !r.Authentication.Null {
		_, faults := r.login()
		messages = append(messages, faults...)
	}
	return messages
}

// missing are the faults of a request to register a broker that a request to
// change one does not have.
func (r BrokerChange) missing() []string {
	messages := control.Must(r.Name.Set && !r.Name.Null, "Name must be a string",
		r.URL.Set && !r.URL.Null, "Url must be a string, Url '' must be a valid url",
		r.Authentication.Set && !r.Authentication.Null, "Authentication must be an object")
	if r.Relationships != nil && r.space() == "" {
		messages = append(messages, `Relationships Space must be structured like this: "space: {"data": {"guid": "valid-guid"}}"`)
	}
	return messages
}

func (r BrokerChange) space() string {
	if r.Relationships == nil || r.Relationships.Space == nil {
		return ""
	}
	return r.Relationships.Space.GUID()
}

func brokerURLFaults(raw string) []string {
	u, err := url.Parse(raw)
	valid := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if !valid {
		return []string{"Url '" + raw + "' must be a valid url"}
	}
	return control.Must(u.User == nil, "Url must not contain authentication")
}

// login is what basic authentication sends.
type login struct{ username, password string }

// login reads "authentication", whose faults Cloud Controller words by hand.
func (r BrokerChange) login() (l login, faults []string) {
	var auth, fields map[string]json.RawMessage
	if json.Unmarshal(r.Authentication.V, &auth) != nil || auth == nil {
		return l, []string{"Authentication must be an object"}
	}
	var kind string
	if json.Unmarshal(auth["type"], &kind) != nil || kind != "basic" {
		faults = append(faults, `Authentication authentication.type must be one of ["basic"]`)
	}
	if json.Unmarshal(auth["credentials"], &fields) != nil || fields == nil {
		return l, append(faults, "Authentication must be an object")
	}
	faults = append(faults, l.read(fields)...)
	return l, faults
}

func (l *login) read(fields map[string]json.RawMessage) []string {
	var names, why []string
	for _, f := range []struct {
		name, title string
		to          *string
	}{{"username", "Username", &l.username}, {"password", "Password", &l.password}} {
		if err := json.Unmarshal(fields[f.name], f.to); err != nil || string(fields[f.name]) == "null" {
			why = append(why, `"`+f.title+` must be a string"`)
		}
		if strings.TrimSpace(*f.to) == "" {
			why = append(why, `"`+f.title+` can't be blank"`)
			names = append(names, `"`+f.name+`"`)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"Authentication Field(s) [" + strings.Join(names, ", ") + "] must be valid: [" + strings.Join(why, ", ") + "]"}
}

// audited is the request as audit events show it: without the password.
func (r BrokerChange) audited() audit.Data {
	d := audit.Data{}
	if r.Name.Set {
		d["name"] = r.Name.V
	}
	if r.URL.Set {
		d["url"] = r.URL.V
	}
	if r.Authentication.Set {
		l, _ := r.login() // was found right
		d["authentication"] = audit.Data{"type": "basic", "credentials": audit.Data{"username": l.username, "password": audit.Hidden}}
	}
	if r.space() != "" {
		d["relationships"] = audit.Data{"space": audit.Relation(r.space())}
	}
	return audit.Data{"request": d}
}
