package osb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// Known is what the platform has of the broker whose catalog is checked.
type Known struct {
	Broker   string
	Services []KnownService
}

// KnownService is a service that the platform has of a broker.
type KnownService struct {
	ID, Name string
	Used     bool      // it has instances
	Plans    []KnownID // its plans
}

// KnownID is the broker's id of a thing, and its name.
type KnownID struct{ ID, Name string }

// faults are messages about a thing, and about things in it.
type faults struct {
	messages []string
	nested   []nestedFaults
}

type nestedFaults struct {
	title string
	faults
}

func (f *faults) add(format string, args ...any) {
	f.messages = append(f.messages, fmt.Sprintf(format, args...))
}

func (f *faults) empty() bool {
	return len(f.messages) == 0 && !slices.ContainsFunc(f.nested, func(n nestedFaults) bool { return !n.empty() })
}

func (f *faults) nest(title string, in faults) {
	if !in.empty() {
		f.nested = append(f.nested, nestedFaults{title, in})
	}
}

// write lists messages line by line, those of things in things indented.
func (f *faults) write(b *strings.Builder, indent string) {
	for _, m := range f.messages {
		b.WriteString(indent + m + "\n")
	}
	for _, n := range f.nested {
		b.WriteString(indent + n.title + "\n")
		n.write(b, indent+"  ")
	}
}

// Faults says what is wrong with the catalog, in Cloud Controller's words and
// lines; "" for nothing.
func (c *Catalog) Faults(known Known) string {
	f := &faults{}
	for i, s := range c.raw {
		f.nest("Service "+c.Services[i].Name, s.faults())
	}
	if len(c.raw) == 0 {
		f.add("Service broker must provide at least one service")
	}
	c.checkServices(f, known)
	c.checkPlans(f, known)
	if f.empty() {
		return ""
	}
	b := &strings.Builder{}
	b.WriteString("\n")
	f.write(b, "")
	return b.String()
}

// checkServices requires unique services, also among those of other brokers.
func (c *Catalog) checkServices(f *faults, known Known) {
	ids, names, taken := map[string]bool{}, map[string]bool{}, []string{}
	sameID, sameName := false, false
	for _, s := range c.Services {
		sameID = sameID || s.ID != "" && ids[s.ID]
		sameName = sameName || names[s.Name]
		ids[s.ID], names[s.Name] = true, true
	}
	if sameID {
		f.add("Service ids must be unique")
	}
	if sameName {
		f.add("Service names must be unique within a broker")
	}
	for _, k := range known.Services {
		i := slices.IndexFunc(c.Services, func(s Service) bool { return s.Name == k.Name })
		if i >= 0 && c.Services[i].ID != k.ID && k.Used {
			taken = append(taken, quote(k.Name))
		}
	}
	if len(taken) > 0 {
		f.add("Service names must be unique within a broker. Services with names [%s] already exist", strings.Join(taken, ", "))
	}
}

type placedPlan struct {
	service Service
	plan    Plan
}

// checkPlans wants ids of plans that are of one plan only.
func (c *Catalog) checkPlans(f *faults, known Known) {
	const already = "Plan ids must be unique. Unable to register plan with id '%s' (plan name '%s', service name '%s') because it uses the same id as "
	seen := map[string]placedPlan{}
	clients := map[string]bool{}
	sameClient := false
	for i, s := range c.Services {
		for _, p := range s.Plans {
			if other, ok := seen[p.ID]; ok {
				f.add(already+"another plan in the catalog (plan name '%s', service name '%s')", p.ID, p.Name, s.Name, other.plan.Name, other.service.Name)
			}
			seen[p.ID] = placedPlan{s, p}
		}
		if id := text(members(c.raw[i].fields["dashboard_client"])["id"]); id != "" {
			sameClient = sameClient || clients[id]
			clients[id] = true
		}
	}
	for _, k := range known.Services {
		for _, p := range k.Plans {
			if is, ok := seen[p.ID]; ok && is.service.ID != k.ID {
				f.add(already+"an existing plan (plan name '%s', service name '%s', broker name '%s')", p.ID, is.plan.Name, is.service.Name, p.Name, k.Name, known.Broker)
			}
		}
	}
	if sameClient {
		f.add("Service dashboard_client id must be unique")
	}
}

func (r rawService) faults() (f faults) {
	v := r.fields
	f.wantText("Service id", v["id"], true)
	f.wantText("Service name", v["name"], true)
	f.wantDescription("Service description", v["description"])
	f.wantBool(`Service "bindable" field`, v["bindable"], true)
	for _, name := range []string{"plan_updateable", "bindings_retrievable", "instances_retrievable", "allow_context_updates"} {
		f.wantBool(`Service "`+name+`" field`, v[name], false)
	}
	f.wantTags(text(v["name"]), v)
	if _, ok := v["requires"]; ok {
		f.wantList(`Service "requires" field`, "strings", "string", v["requires"])
	}
	r.metadataFaults(&f)
	for _, thing := range elements(v["requires"]) {
		if !slices.Contains([]string{"syslog_drain", "route_forwarding", "volume_mount"}, text(thing)) {
			f.add(`Service "requires" field contains unsupported value "%s"`, plain(thing))
		}
	}
	r.planFaults(&f)
	return f
}

func (r rawService) metadataFaults(f *faults) {
	v := r.fields
	if m := v["metadata"]; !absent(m) {
		f.wantObject("Service metadata", m)
		f.wantBool("Service metadata shareable", members(m)["shareable"], false)
	}
	client := v["dashboard_client"]
	if absent(client) || !f.wantObject("Service dashboard client attributes", client) {
		return
	}
	for _, name := range []string{"id", "secret", "redirect_uri"} {
		value := members(client)[name]
		if name == "secret" && !absent(value) && kindOf(value) != "string" {
			f.add("Service dashboard client secret must be a string")
			continue
		}
		f.wantText("Service dashboard client "+name, value, true)
	}
}

func (r rawService) planFaults(f *faults) {
	plans := r.fields["plans"]
	if absent(plans) || kindOf(plans) == "array" && len(elements(plans)) == 0 {
		f.add("At least one plan is required")
		return
	}
	if !f.wantList("Service plans list", "hashes", "object", plans) {
		return
	}
	service := text(r.fields["name"])
	ids, names := map[string]int{}, map[string]int{}
	for _, p := range r.plans {
		f.nest("Plan "+text(p["name"]), planFaults(p))
	}
	for _, p := range r.plans {
		if ids[text(p["id"])]++; ids[text(p["id"])] == 2 {
			f.add("Plan ids must be unique. Service %s already has a plan with id '%s'", service, text(p["id"]))
		}
	}
	for _, p := range r.plans {
		if names[text(p["name"])]++; names[text(p["name"])] == 2 {
			f.add("Plan names must be unique within a service. Service %s already has a plan named %s", service, text(p["name"]))
		}
	}
}

func planFaults(v map[string]json.RawMessage) (f faults) {
	f.wantText("Plan id", v["id"], true)
	f.wantText("Plan name", v["name"], true)
	f.wantDescription("Plan description", v["description"])
	if !absent(v["metadata"]) {
		f.wantObject("Plan metadata", v["metadata"])
	}
	f.wantBool("Plan free", v["free"], false)
	f.wantBool("Plan bindable", v["bindable"], false)
	f.wantBool("Plan updateable", v["plan_updateable"], false)
	if d := v["maximum_polling_duration"]; !absent(d) && kindOf(d) != "integer" {
		f.add("Maximum polling duration must be an integer, but has value %s", inspect(d))
	}
	schemas := v["schemas"]
	if !absent(schemas) {
		f.wantObject("Plan schemas", schemas)
	}
	f.wantMaintenance(v["maintenance_info"])
	f.nest("Schemas", schemaFaults(members(schemas)))
	return f
}

// semver is the expression that semver.org proposes.
var semver = pattern.Lazy(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

func (f *faults) wantMaintenance(raw json.RawMessage) {
	if absent(raw) || !f.wantObject("Maintenance info", raw) {
		return
	}
	info := members(raw)
	f.wantText("Maintenance info version", info["version"], true)
	if !semver().MatchString(plain(info["version"])) {
		f.add("Maintenance info version must be a Semantic Version, but has value %s", inspect(info["version"]))
	}
	f.wantText("Maintenance info description", info["description"], false)
	if n := len([]rune(string(raw))); n > 2000 {
		f.add("Maintenance info must serialize to 2000 characters or fewer in JSON, but serializes to %d characters", n)
	}
	var extra []string
	for name := range info {
		if name != "version" && name != "description" {
			extra = append(extra, name)
		}
	}
	if slices.Sort(extra); len(extra) > 0 {
		f.add("Maintenance info contains invalid key(s): %s", strings.Join(extra, ", "))
	}
}
