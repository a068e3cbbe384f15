// Command build makes web/dist of web/src and web/vendor: bundled, minified and
// compressed files, whose names carry a hash of what they hold. The same sources
// give the same bytes. Run it in web/build; `make web` does.
//
//	build          writes ../dist
//	build -check   fails where ../dist is not what the sources give, or a line is too long
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// vendored are the libraries' names in import statements, and their files.
var vendored = map[string]string{
	"preact":               "preact/preact.mjs",
	"preact/hooks":         "preact/hooks.mjs",
	"htm":                  "htm/htm.mjs",
	"@preact/signals":      "signals/signals.mjs",
	"@preact/signals-core": "signals-core/signals-core.mjs",
	"uplot":                "uplot/uPlot.esm.js",
	"uplot.css":            "uplot/uPlot.min.css",
	"@xterm/xterm":         "xterm/xterm.mjs",
	"xterm.css":            "xterm/xterm.css",
	"@xterm/addon-fit":     "xterm-addon-fit/addon-fit.mjs",

	"postal-mime":             "postal-mime/postal-mime.js",
	"postal-mime/text-format": "postal-mime/text-format.js",
}

func main() {
	check := flag.Bool("check", false, "fail where dist is not what the sources give")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool) error {
	web, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	files, err := bundle(web)
	if err != nil {
		return err
	}
	dist := filepath.Join(web, "dist")
	if check {
		err := checkLines(filepath.Join(web, "src"), filepath.Join(web, "..", "test", "e2e", "web", "browser"))
		return errors.Join(err, compare(dist, files))
	}
	return write(dist, files)
}

// bundle returns the files of dist by name, uncompressed.
func bundle(web string) (map[string][]byte, error) {
	alias := map[string]string{}
	for name, file := range vendored {
		alias[name] = filepath.Join(web, "vendor", file)
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: web,
		EntryPoints:   []string{"src/main.js", "src/worker.js", "src/icon.svg"},
		Outdir:        "dist",
		Bundle:        true,
		Splitting:     true,
		Format:        api.FormatESModule,
		Platform:      api.PlatformBrowser,
		Engines:       []api.Engine{{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "121"}, {Name: api.EngineSafari, Version: "17.5"}},
		EntryNames:    "assets/[name]-[hash]",
		ChunkNames:    "assets/[name]-[hash]",
		AssetNames:    "assets/[name]-[hash]",
		PublicPath:    "/console",
		Alias:         alias,
		Loader:        map[string]api.Loader{".svg": api.LoaderCopy},
		Plugins:       []api.Plugin{{Name: "web", Setup: setup}},

		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		LegalComments: api.LegalCommentsNone, // the licences are in vendor
		Charset:       api.CharsetUTF8,
		LogLevel:      api.LogLevelWarning,
	})
	if n := len(result.Errors) + len(result.Warnings); n > 0 {
		return nil, fmt.Errorf("%d errors and warnings in web/src", n)
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		name, err := filepath.Rel(filepath.Join(web, "dist"), f.Path)
		if err != nil {
			return nil, err
		}
		files[filepath.ToSlash(name)+".gz"] = f.Contents
	}
	index, err := page(web, files)
	files["index.html"] = index
	return files, err
}

// setup adds what the sources need beyond plain bundling: CSS as text, by the
// ending ?text, and an xterm that works under the console's policy.
func setup(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `\?text$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		file, ok := vendored[strings.TrimSuffix(a.Path, "?text")]
		if !ok {
			return api.OnResolveResult{}, fmt.Errorf("%s is not a vendored file", a.Path)
		}
		// Not the whole path: names carry a hash of it.
		return api.OnResolveResult{Path: "vendor/" + file, Namespace: "text"}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: ".", Namespace: "text"}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text, err := os.ReadFile(filepath.Join(b.InitialOptions.AbsWorkingDir, a.Path))
		s := string(text)
		return api.OnLoadResult{Contents: &s, Loader: api.LoaderText}, err
	})
	b.OnLoad(api.OnLoadOptions{Filter: `/xterm\.mjs$`}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text, err := os.ReadFile(a.Path)
		if err != nil {
			return api.OnLoadResult{}, err
		}
		s, err := underPolicy(string(text))
		return api.OnLoadResult{Contents: &s, Loader: api.LoaderJS}, err
	})
}

// underPolicy changes xterm where it would need style-src 'unsafe-inline': its
// <style> elements become <adopted-style> (src/lib/adoptedstyle.js), and its style
// attributes are set through the object model.
func underPolicy(xterm string) (string, error) {
	replacements := []struct {
		old, new string
		count    int
	}{
		{`createElement("style")`, `createElement("adopted-style")`, 3},
		{"t.setAttribute(\"style\",`${t.getAttribute(\"style\")||\"\"}${e};`)", "t.style.cssText+=e+\";\"", 1},
	}
	for _, r := range replacements {
		if n := strings.Count(xterm, r.old); n != r.count {
			return "", fmt.Errorf("vendor/xterm has %q %d times; want %d: look again at what the policy forbids", r.old, n, r.count)
		}
		xterm = strings.ReplaceAll(xterm, r.old, r.new)
	}
	return xterm, nil
}

var placeholder = regexp.MustCompile(`\{\{([a-z]+\.[a-z]+)\}\}`)

// page is index.html with the names of the built files.
func page(web string, files map[string][]byte) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(web, "src", "index.html"))
	if err != nil {
		return nil, err
	}
	var missing error
	out := placeholder.ReplaceAllFunc(text, func(match []byte) []byte {
		name, ending, _ := strings.Cut(string(placeholder.FindSubmatch(match)[1]), ".")
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(file, "assets/"+name+"-") && strings.HasSuffix(file, "."+ending+".gz") {
				return []byte("/console/" + strings.TrimSuffix(file, ".gz"))
			}
		}
		missing = fmt.Errorf("index.html names %s, which was not built", match)
		return nil
	})
	return out, missing
}

// write replaces dist.
func write(dist string, files map[string][]byte) error {
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dist, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".gz") {
			var err error
			if text, err = compress(text); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress has no time and no name in it, so that it gives the same bytes again.
func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// compare returns an error that names the files of dist that are missing, too many
// or different.
func compare(dist string, files map[string][]byte) error {
	var wrong []string
	have := map[string]bool{}
	err := filepath.WalkDir(dist, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err != nil {
			return err
		}
		have[filepath.ToSlash(name)] = true
		return nil
	})
	if err != nil {
		return err
	}
	for name := range have {
		want, ok := files[name]
		got, err := contents(filepath.Join(dist, name))
		if !ok || err != nil || !bytes.Equal(got, want) {
			wrong = append(wrong, name)
		}
	}
	for name := range files {
		if !have[name] {
			wrong = append(wrong, name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("web/dist is not what web/src gives (%s): run make web and commit it", strings.Join(wrong, ", "))
}

// contents is a file of dist, uncompressed: what another Go version would compress
// otherwise is the same.
func contents(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return b, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
