// Package vcap works on the environment variables that Cloud Foundry gives an
// app as JSON: VCAP_APPLICATION and VCAP_SERVICES.
package vcap

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"cupola/runtime/contract"
)

// DatabaseURL returns the DATABASE_URL that belongs to the VCAP_SERVICES text:
// the credentials.uri of the first relational service, labels in alphabetical
// order. It is empty when there is none or the text is not as expected.
func DatabaseURL(services string) string {
	var byLabel map[string][]struct {
		Credentials struct {
			URI string `json:"uri"`
		} `json:"credentials"`
	}
	if services == "" || json.Unmarshal([]byte(services), &byLabel) != nil {
		return ""
	}
	for _, label := range slices.Sorted(maps.Keys(byLabel)) {
		for _, s := range byLabel[label] {
			u, err := url.Parse(s.Credentials.URI)
			if err != nil {
				continue
			}
			if scheme, ok := contract.RailsScheme(u.Scheme); ok {
				u.Scheme = scheme
				return u.String()
			}
		}
	}
	return ""
}

// Instance is what only the container knows about an app. The texts are the
// values of the variables named; those that are not numbers are left out.
type Instance struct {
	GUID  string // INSTANCE_GUID
	Index string // INSTANCE_INDEX
	Port  string // PORT
}

// CompleteApplication adds host, instance_id, instance_index and port to the
// VCAP_APPLICATION text and leaves its other members as they are. It returns
// false, and the text unchanged, when that is not a JSON object.
func CompleteApplication(application string, in Instance) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(application), &members) != nil || members == nil {
		return application, false
	}
	guid, err := json.Marshal(in.GUID)
	if err != nil {
		return application, false
	}
	members["host"] = json.RawMessage(`"0.0.0.0"`)
	members["instance_id"] = guid
	if n, err := strconv.Atoi(in.Port); err == nil {
		members["port"] = json.RawMessage(strconv.Itoa(n))
	}
	if n, err := strconv.Atoi(in.Index); err == nil {
		members["instance_index"] = json.RawMessage(strconv.Itoa(n))
	}
	text, err := json.Marshal(members)
	if err != nil {
		return application, false
	}
	return string(text), true
}
