package bindings

import (
	"encoding/json"
	"slices"
	"strings"
)

// userProvided is the label of instances without a broker.
const userProvided = "user-provided"

// Binding is a binding of an app with what belongs to it of its service.
type Binding struct {
	Label        string  // the offering's name; "" for a user-provided service
	Plan         string  // "" for a user-provided service
	Name         *string // the binding's own; nil for none
	GUID         string
	InstanceName string
	InstanceGUID string
	Tags         []string        // the offering's, then the instance's; of equal ones the first counts
	Credentials  json.RawMessage // an object, or empty
	DrainURL     string          // syslog_drain_url
	VolumeMounts json.RawMessage // as the broker gave them: a list, or empty
}

// label is the binding's key in VCAP_SERVICES.
func (b Binding) label() string {
	if b.Label == "" {
		return userProvided
	}
	return b.Label
}

// name is the binding's, or else the instance's.
func (b Binding) name() string {
	if b.Name != nil && strings.TrimSpace(*b.Name) != "" {
		return *b.Name
	}
	return b.InstanceName
}

// attribute is one of what VCAP_SERVICES says of a binding.
type attribute struct {
	name  string
	value value
}

// attributes are all but the credentials, in Cloud Controller's order.
func (b Binding) attributes() ([]attribute, error) {
	mounts, err := b.mounts()
	if err != nil {
		return nil, err
	}
	all := []attribute{{"label", b.label()}}
	if b.Label != "" {
		all = append(all, attribute{"provider", nil}, attribute{"plan", b.Plan})
	}
	var bindingName value
	if b.Name != nil {
		bindingName = *b.Name
	}
	return append(all, attribute{"name", b.name()}, attribute{"tags", b.tags()},
		attribute{"instance_guid", b.InstanceGUID}, attribute{"instance_name", b.InstanceName},
		attribute{"binding_guid", b.GUID}, attribute{"binding_name", bindingName},
		attribute{"syslog_drain_url", orNull(b.DrainURL)}, attribute{"volume_mounts", mounts}), nil
}

func orNull(s string) value {
	if s == "" {
		return nil
	}
	return s
}

func (b Binding) tags() []value {
	all := []value{}
	for _, t := range b.Tags {
		if !slices.Contains(all, value(t)) {
			all = append(all, t)
		}
	}
	return all
}

// mounts are the volume mounts as apps may see them.
func (b Binding) mounts() ([]value, error) {
	parsed, err := parse(b.VolumeMounts)
	if err != nil {
		return nil, err
	}
	shown := []value{}
	list, _ := parsed.([]value)
	for _, m := range list {
		of, _ := m.(object)
		shown = append(shown, slices.DeleteFunc(of, func(a attribute) bool {
			return a.name != "container_dir" && a.name != "mode" && a.name != "device_type"
		}))
	}
	return shown, nil
}
