package script

import (
	"cmp"
	"fmt"
	"net/rpc"
	"os"
	"strconv"
	"strings"
)

// The program of these tests is a plugin of the CLI, too, so that none has to be
// built: the CLI starts a plugin with the port of its RPC server and a command.

// isPlugin reports whether the CLI started this program.
func isPlugin(args []string) bool {
	if len(args) < 3 {
		return false
	}
	_, err := strconv.ParseUint(args[1], 10, 16)
	return err == nil
}

// pluginVersion is of net/rpc's form of plugin.VersionType (CLI: plugin/plugin.go).
type pluginVersion struct{ Major, Minor, Build int }

// pluginCommand is a command of a plugin.
type pluginCommand struct{ Name, Alias, HelpText string }

// pluginMetadata is how a plugin describes itself.
type pluginMetadata struct {
	Name                    string
	Version, LibraryVersion pluginVersion
	Commands                []pluginCommand
}

// named is what the CLI's RPC server says of orgs, spaces, apps and services. A space
// has it in a part of the name.
type named struct {
	Guid, Name, State string                      //nolint:staticcheck // gob goes by the CLI's names
	GetSpaces_Model   struct{ Guid, Name string } //nolint:staticcheck // likewise
}

// metadataOfPlugin is what GREETER, a variable of the script, makes of it: "newer",
// "clash" (with names of the CLI's commands), "ahead" (of the CLI's library) or
// "empty".
func metadataOfPlugin() pluginMetadata {
	m := pluginMetadata{
		Name: "Greeter", Version: pluginVersion{1, 2, 3},
		Commands: []pluginCommand{{"greet", "gr", "Greet the user of the CLI"}, {Name: "greet-all", HelpText: "List what the user sees"}},
	}
	switch os.Getenv("GREETER") {
	case "newer":
		m.Version.Build++
	case "clash":
		m.Name, m.Commands = "Clash", []pluginCommand{{Name: "push", Alias: "t"}, {Name: "greet"}}
	case "ahead":
		m.LibraryVersion.Major = 2
	case "empty":
		m.Commands = nil
	}
	return m
}

// runPlugin does a command of the plugin, and gives the exit code.
func runPlugin(port string, args []string) int {
	client, err := rpc.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer client.Close()
	p := plugin{client: client}
	switch args[0] {
	case "SendMetadata":
		p.ask("SetPluginMetadata", metadataOfPlugin(), new(bool))
	case "greet":
		p.greet()
	case "greet-all":
		p.list(args[1:])
	case "CLI-MESSAGE-UNINSTALL":
		if os.Getenv("GREETER") == "stubborn" {
			return 1
		}
	}
	if p.err != nil {
		fmt.Println(p.err)
		return 1
	}
	return 0
}

// plugin is a run of the plugin. Its first error is the last question.
type plugin struct {
	client *rpc.Client
	err    error
}

func (p *plugin) ask(method string, arg, reply any) {
	if err := p.client.Call("CliRpcCmd."+method, arg, reply); err != nil {
		p.err = cmp.Or(p.err, fmt.Errorf("%s: %w", method, err))
	}
}

// greet says what the CLI knows without the API, and gets a token and a page from it.
func (p *plugin) greet() {
	var user, api, token string
	var org struct{ OrganizationFields named }
	var space struct{ SpaceFields named }
	var loggedIn, success bool
	var page []string
	p.ask("Username", "", &user)
	p.ask("ApiEndpoint", "", &api)
	p.ask("GetCurrentOrg", "", &org)
	p.ask("GetCurrentSpace", "", &space)
	p.ask("IsLoggedIn", "", &loggedIn)
	p.ask("AccessToken", "", &token)
	p.ask("DisableTerminalOutput", true, &success)
	p.ask("CallCoreCommand", []string{"curl", "/v3/organizations/" + org.OrganizationFields.Guid}, &success)
	p.ask("GetOutputAndReset", success, &page)
	fmt.Printf("hello %s in %s/%s at %s: %v %v\n", user, org.OrganizationFields.Name, space.SpaceFields.Name, api, loggedIn, strings.HasPrefix(token, "bearer "))
	fmt.Println(strings.Join(page, "\n"))
}

// list prints what the CLI's RPC server lists for plugins, and what of that the
// arguments name, like App=NAME.
func (p *plugin) list(args []string) {
	for _, kind := range []string{"Orgs", "Spaces", "Apps", "Services"} {
		var all []named
		p.ask("Get"+kind, "", &all)
		for _, one := range all {
			fmt.Println(kind, one.Name, one.State)
		}
	}
	for _, arg := range args {
		var one named
		kind, name, _ := strings.Cut(arg, "=")
		p.ask("Get"+kind, name, &one)
		fmt.Println(kind, cmp.Or(one.Name, one.GetSpaces_Model.Name), one.State)
	}
}
