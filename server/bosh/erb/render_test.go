package erb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh/link"
)

// hostRuby runs the tests' own templates, so it needs no sandbox.
func hostRuby(t testing.TB) Ruby {
	t.Helper()
	path, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("needs ruby")
	}
	return func(ctx context.Context, program, input []byte) ([]byte, error) {
		cmd := exec.CommandContext(ctx, path, "/dev/fd/3")
		file, write, err := pipe(program)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		go write()
		cmd.ExtraFiles, cmd.Env, cmd.Stdin = append(cmd.ExtraFiles, file), []string{}, bytes.NewReader(input)
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil {
			return out.Bytes(), fmt.Errorf("ruby: %v: %s", err, said.String())
		}
		return out.Bytes(), nil
	}
}

func example() *Context {
	return &Context{
		Spec: map[string]any{
			"name": "servers", "index": 1, "id": "nats-1-nats", "az": "z1", "bootstrap": false, "address": "d-nats-1", "ip": "10.0.0.1",
			"job":      map[string]any{"name": "nats"},
			"networks": map[string]any{"default": map[string]any{"ip": "10.0.0.1"}},
		},
		Properties: map[string]any{
			"port": 4222, "ratio": 1.0, "debug": false, "none": nil, "text": `a "b" 'c' é`, "list": []any{"a", 1, nil, true, 2.5, []any{}},
			"tls": map[string]any{"key": "K\nL", "empty": map[string]any{}, "map": map[string]any{"a": "b"}}, "big": uint64(1<<63 + 1),
		},
		Links: map[string]link.Link{"db": {
			Address: "d-db", Properties: map[string]any{"user": map[string]any{"name": "u"}, "port": 5432},
			Instances: []link.Instance{{Name: "db", ID: "db-0", Address: "d-db-0", AZ: "z1", Bootstrap: true}, {Name: "db", ID: "db-1", Address: "d-db-1", Index: 1}},
		}},
	}
}

// goldens are templates and what they come to for the example; a text that
// begins with "!" is that of an error.
var goldens = []struct {
	name, text, want string
	simple           bool // Go renders it
}{
	{"literal", "plain\n% text %>\n", "plain\n% text %>\n", true},
	{"property", `port: <%= p("port") %>.`, "port: 4222.", true},
	{"single quotes", `<%=p('text')%>`, `a "b" 'c' é`, true},
	{"nested", `<%= p( "tls.key" ) %>`, "K\nL", true},
	{"float", `<%= p("ratio") %>`, "1.0", true},
	{"big", `<%= p("big") %>`, "9223372036854775809", true},
	{"false is a value", `<%= p("debug", true) %>`, "false", true},
	{"list", `<%= p("list") %>`, `["a", 1, nil, true, 2.5, []]`, true},
	{"empty map", `<%= p("tls.empty") %>`, "{}", true},
	{"map", `<%= p("tls.map").to_a %>`, `[["a", "b"]]`, false},
	{"default", `<%= p("none", "d") %>|<%= p('no.such', 'x') %>|<%= p("none", 12) %>|<%= p("none", nil) %>|<%= p("none", []) %>|<%= p("none", {}) %>`, "d|x|12||[]|{}", true},
	{"default that is computed", `<%= p("none", 1 + 2) %>`, "3", false},
	{"first of several", `<%= p(["none", "port"]) %>`, "4222", false},
	{"no value", "a\n<%= p('none') %>", "!:2: Can't find property 'none'", true},
	{"not declared", "a\n\n<%= p('a.b-c') %>", "!:3: Can't find property 'a.b-c'", true},
	{"none of several", `<%= p(["none", "x"]) %>`, `!:1: Can't find property '["none", "x"]'`, false},
	{"below a text", `<%= p("text.a", "z") %>`, "a", false},
	{"spec", `<%= spec.index %> <%= spec.networks.default.ip %> <%= spec.az %> <%= spec.bootstrap %> <%= name %>/<%= index %>`, "1 10.0.0.1 z1 false servers/1", true},
	{"unknown spec", `<%= spec.release %>.`, ".", false},
	{"below unknown spec", `<%= spec.release.version %>.`, "!:1: undefined method", false},
	{"link", `<%= link("db").p("user.name") %>@<%= link('db').address %>:<%= link("db").p("port", 1) %>`, "u@d-db:5432", true},
	{"link instance", `<%= link("db").instances[1].address %> [<%= link("db").instances[1].az %>]`, "d-db-1 []", true},
	{"link address of some", `<%= link("db").address(azs: ["z1"]) %>`, "d-db", false},
	{"no link", "\n<%= link('x').p('y') %>", "!:2: Can't find link 'x'", true},
	{"no property of a link", "<%= link('db').p('y') %>", "!:1: Can't find property 'y'", true},
	{"trim", "a\n<%# comment -%>\nb <%= p('port') -%>\n c\n  <%# x %>\n", "a\nb 4222 c\n  \n", true},
	{"trim at the end", "<%= index -%>", "1", true},
	{"trim before", "a\n   <%- x = 1 -%>\nb<%= x %>\n", "a\nb1\n", false},
	{"escaped", "<%%= p('port') %>", "<%= p('port') %>", true},
	{"escaped end", "<%= 'a %%> b' %>", "a %> b", false},
	{"lines of tags", "<%# a %>\n<%= \n p('no') %>", "!: Can't find property 'no'", true},
	{"if_p", `<% if_p("port", "tls.key") do |port, key| %><%= port %><% end.else do %>none<% end %>`, "4222", false},
	{"else", `<% if_p("none") do |x| %>x<% end.else_if_p("port") do |port| %><%= port %><% end.else do %>none<% end %>`, "4222", false},
	{"else of else", `<% if_p("none") { }.else_if_link("x") { }.else do %>none<% end %>`, "none", false},
	{"if_link", `<% if_link("db") do |db| %><%= db.instances.map(&:address).join(",") %> <%= db.if_p("port") { |p| p }.class %><% end %>`, "d-db-0,d-db-1 Done", false},
	{"instance of a link", `<%= link("db").instances[0].p("port") %>`, "5432", false},
	// What bosh-template of the director makes of them, too (bosh: src/bosh-common/lib/bosh/common/template).
	{"else_if_p of a link", `<% link("db").if_p("no") { }.else_if_p("user.name") do |user| %><%= user %><% end.else do %>none<% end %>`, "u", false},
	{"else_if_p of a link is of no property of the job", `<% link("db").if_p("no") { }.else_if_p("ratio") do |r| %><%= r %><% end.else do %>none<% end %>`, "none", false},
	{"blank", `<%= [nil, "", " \n", [], {}, false, 0, "a"].map(&:blank?).join(" ") %>`, "true true true true true true false false", false},
	{"presence", `<%= [" ", "a", [], [1], 0].map(&:presence).inspect %> <%= "a".present? %>`, `[nil, "a", nil, [1], 0] true`, false},
	{"networks of a spec", `<%= spec.networks.methods(false).first %> <%= spec.networks.send(spec.networks.methods(false).first).ip %> <%= spec.networks.to_h.values.first.ip %> <%= spec.networks.marshal_dump.keys.inspect %>`, "default 10.0.0.1 10.0.0.1 [:default]", false},
	{"properties of the spec", `<%= spec.properties.tls.key.lines.length %>`, "2", false},
	{"properties", `<%= properties.tls.key.lines.length %> <%= properties.none.inspect %> <%= raw_properties["port"] %>`, "2 nil 4222", false},
	{"libraries", `<%= JSON.dump([1]) %> <%= Shellwords.escape("a b") %> <%= {"a"=>1}.to_yaml.strip.inspect %> <%= "".blank? %> <%= URI("http://x").host %>`, `[1] a\ b "---\na: 1" true x`, false},
	{"method", "<% def twice(x); x * 2; end -%>\n<%= twice(p('port')) %>", "8444", false},
	{"method of another template", "<%= twice(1) %>", "!:1: undefined method", false},
	{"changes are its own", "<% p('list').clear; raw_properties['port'] = 1 %><%= p('port') %>", "1", false},
	{"changes of another", "<%= p('list').length %> <%= p('port') + 1 %>", "6 4223", false},
	{"raise", "\n\n<% raise 'bad port' %>", "!:3: bad port", false},
	{"syntax", "a\n<% if %>", "!:2: syntax error", false},
	{"exit", "<% exit %>", "!:1: calls exit", false},
	{"abort", "a\n<% abort 'bad policy' %>", "!:2: bad policy", false},
	{"rescue", `<% begin; p("none"); rescue UnknownProperty => e %>no <%= e.name.inspect %><% end %> <% begin; link("x"); rescue UnknownLink => e %><%= e.message %><% end %>`,
		`no ["none"] Can't find link 'x'`, false},
	{"prints", "<% puts 'x'; $stdout.puts '{}' %>fine", "fine", false},
	{"deep", "<% def down; down; end; down %>", "!:1: needs more memory or a deeper stack", false},
	{"unfinished", "<%= p('port')", " p('port')", false},
	{"no text", "<%= nil %>", "", false},
	{"carriage return", "<%= index -%>\r\nx", "1x", false},
	{"UTF-8 without a locale", "é<%= 'ü'.length %>", "é1", false},
	{"bytes", "\xff\xfe<%= 1 %>", "\xff\xfe1", false},
	{"literal bytes", "\xff\xfe", "\xff\xfe", true},
	{"magic", "<%# coding: UTF-8 %>x", "x", false},
}

func TestGoldens(t *testing.T) {
	ruby := hostRuby(t)
	c := example()
	for _, test := range goldens {
		all := []Template{{Group: "nats", Job: "nats", Index: 1, Source: "t.erb", Destination: "t", Text: []byte(test.text), Context: c}}
		out, err := Render(t.Context(), all, nil)
		if simple := !errors.As(err, new(missingRuby)); simple != test.simple {
			t.Errorf("%s: simple is %v", test.name, simple)
		}
		if test.simple {
			check(t, test.name+", by Go", test.want, out, err)
		}
	}
	all := make([]Template, len(goldens))
	at := make([]int, len(goldens))
	out := make([][]byte, len(goldens))
	for i, test := range goldens {
		all[i] = Template{Group: "nats", Job: "nats", Index: 1, Source: "t.erb", Destination: "t", Text: []byte(test.text), Context: c}
		at[i] = i
	}
	faults, err := render(t.Context(), ruby, all, at, out)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range goldens {
		var err error
		for _, f := range faults {
			if f.Template == &all[i] {
				err = f
			}
		}
		check(t, test.name+", by Ruby", test.want, out[i:i+1], err)
	}
}

func check(t *testing.T, name, want string, out [][]byte, err error) {
	t.Helper()
	if says, is := strings.CutPrefix(want, "!"); is {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %q, %v; want %s", name, out, err, says)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if diff := cmp.Diff(want, string(out[0])); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}
