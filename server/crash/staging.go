package crash

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// stagingBegins is in the first line of a staging's log.
const stagingBegins = "creating container for instance"

// stagingPatterns find the cause in the log of a staging that failed; the first that matches any line counts.
var stagingPatterns = []struct {
	line   func() *regexp.Regexp
	advice string
}{
	{pattern.Lazy(`Failed to upload payload.*: the cell's disk is full`), freeSpace + ", then push again"},
	{pattern.Lazy(`\*\*ERROR\*\* (.+? Available versions: \[[^]]+\]\. .+)`), "$1"},
	{pattern.Lazy(`\*\*ERROR\*\* (.+? Available versions: \[.+\])`), "$1: ask for one of these, or push with another stack"},
	{pattern.Lazy(`\*\*ERROR\*\* (.+)`), "$1"},
	{pattern.Lazy(`Nearest guess: (.+)`), "no buildpack takes the app. Nearest guess: $1; or name a buildpack with cf push -b"},
	{pattern.Lazy(`(No buildpack takes this app\. It has: .+)`), "$1. Push the directory that has the app's own files, or name a buildpack with cf push -b"},
	{pattern.Lazy(`No start command specified by buildpack or via Procfile`), "neither the buildpack nor a Procfile names a start command: name it with cf push -c, or as command in the manifest"},
	{pattern.Lazy(`(?i)no space left on device|disk quota exceeded`), "staging used up its disk, or the data directory's disk is full: push less (.cfignore), ask for more with staging_disk_in_mb of a build, or ask the operator to free space on it"},
	{pattern.Lazy(`\(out of memory\)`), "staging used up its memory: ask for more with staging_memory_in_mb of a build"},
	{pattern.Lazy(`Failed to download (buildpack '.+?': .+)`), "cannot download $1. Correct its address, or let stagings reach it: see cf staging-security-groups"},
	{pattern.Lazy(`Staging failed: (.+)`), "$1"},
	{pattern.Lazy(`^(Failed to (?:set up filesystem|read|compress) .+)`), "$1"},
}

// staging says why the last staging failed, from its log; "" if that does not tell.
func staging(lines []Line) string {
	var output []string
	for _, l := range slices.Backward(lines) {
		if !strings.HasPrefix(l.Source, "STG") {
			continue
		}
		if strings.Contains(l.Text, stagingBegins) {
			break
		}
		output = append(output, l.Text)
	}
	for _, p := range stagingPatterns {
		for _, text := range output {
			if m := p.line().FindStringSubmatchIndex(text); m != nil {
				return string(p.line().ExpandString(nil, p.advice, text, m))
			}
		}
	}
	return ""
}

// refusals are what the API says of a push that it does not accept, and how to mend it.
var refusals = []struct {
	text func() *regexp.Regexp
	mend string
}{
	{pattern.Lazy(`instance memory quota|instance_memory_limit`), "give the app less memory (cf push -m), or have an admin raise the quota's instance memory: cf update-org-quota -i, cf update-space-quota -i"},
	{pattern.Lazy(`space_quota_exceeded|exceeds space memory quota`), "see cf space SPACE and cf space-quota NAME: give apps less memory (cf scale -m, cf push -m), stop some, or raise the quota: cf update-space-quota -m"},
	{pattern.Lazy(`quota_exceeded|exceeds organization memory quota`), "see cf org ORG and cf org-quota NAME: give apps less memory (cf scale -m, cf push -m), stop some, or have an admin raise the quota: cf update-org-quota -m"},
	{pattern.Lazy(`app_instance_limit`), "run fewer instances (cf scale -i), or raise the quota's app instances: cf update-org-quota -a, cf update-space-quota -a"},
	{pattern.Lazy(`Routes quota exceeded`), "delete routes that lead to no app (cf delete-orphaned-routes), or raise the quota: cf update-org-quota -r, cf update-space-quota -r"},
	{pattern.Lazy(`Route already exists|is already mapped|The host is taken|Routes cannot be mapped to destinations in different spaces`), "choose another host name (routes in the manifest, random-route: true), or have the owner of the route share or delete it: cf routes"},
	{pattern.Lazy(`reserved system route`), "the host name belongs to the platform: choose another one (routes in the manifest, random-route: true)"},
	{pattern.Lazy(`No domains exist for route`), "list the domains with cf domains and use one of them, or create it with cf create-private-domain"},
	{pattern.Lazy(`Service instance '.+' not found`), "list the space's service instances with cf services: create it with cf create-service or cf create-user-provided-service, or correct services in the manifest"},
	{pattern.Lazy(`Stack must be an existing stack|The stack could not be found`), "list the stacks with cf stacks, and correct stack in the manifest"},
	{pattern.Lazy(`unknown buildpack name|must be an existing admin buildpack`), "list the buildpacks with cf buildpacks, and correct buildpacks in the manifest, or name none, so that one detects the app"},
	{pattern.Lazy(`Environment variable '.+' is too long|Environment variables are too large`), "keep long values in a file of the app, or in a service: cf create-user-provided-service"},
	{pattern.Lazy(`too much disk requested`), "ask for less with disk_quota in the manifest, or cf push -k"},
	{pattern.Lazy(`insufficient resources`), "no cell has that much: give the app less memory or disk (cf push -m, -k), stop others, or see cupola cells"},
	{pattern.Lazy(`nodes are available: .*Insufficient`), "no node of the cluster has that much left: give the app less memory or disk (cf push -m, -k), stop others, or have an operator add nodes"},
	{pattern.Lazy(`found no compatible cell`), "no cell has the stack or the tags that the app asks for: see cupola cells and cf stacks"},
	{pattern.Lazy(`no files to push`), "push the directory that has the app's files (path in the manifest), and see what .cfignore leaves out"},
}

// Mend says how to mend what the API refused with a text; "" if it does not know.
func Mend(text string) string {
	for _, r := range refusals {
		if r.text().MatchString(text) {
			return r.mend
		}
	}
	return ""
}

// buildCauses are of errors of a build that say all there is.
var buildCauses = []struct{ text, cause string }{
	{"Start command not specified", "neither the app, its buildpack nor a Procfile names a start command: name it with cf push -c, or as command in the manifest"},
	{"the registry has no such image", "the registry has no such image: correct its name and tag (cf push --docker-image NAME:TAG), or push it there first"},
	{"the registry refuses access", "the image is private, or the credentials are wrong: cf push --docker-image NAME --docker-username USER, with the password in CF_DOCKER_PASSWORD"},
	{"StagingTimeExpired", "staging took longer than 15 minutes: bring what it downloads or compiles with the app"},
	{"insufficient resources", "no cell has room for staging: stop other apps, or see cupola cells"},
}

// Build says why the last staging failed, and how to mend it, from the build's error and its log; "" if neither tells.
func Build(failure string, lines []Line) string {
	for _, c := range buildCauses {
		if strings.Contains(failure, c.text) {
			return c.cause
		}
	}
	return cmp.Or(staging(lines), Mend(failure))
}
