package buildpack

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakePHP is a process manager of PHP that tells what it contains.
const fakePHP = `#!/bin/sh
case "$2" in
-v) echo "PHP 8.2.30 (fpm-fcgi) (built: today)" ;;
-i) echo "extension_dir => %s => %s" ;;
-m) printf '[PHP Modules]\nCore\njson\n\n[Zend Modules]\n' ;;
esac
`

func TestPHPOptions(t *testing.T) {
	for text, want := range map[string]string{
		`{"WEB_SERVER": "iis"}`: "invalid WEB_SERVER: iis (must be 'httpd', 'nginx', or 'none')",
		`{`:                     "invalid JSON in .bp-config/options.json",
		`{"WEBDIR": "../up"}`:   "WEBDIR of .bp-config/options.json is \"../up\"",
		`{"ADDITIONAL_PREPROCESS_CMDS": {"a": 1}}`: "ADDITIONAL_PREPROCESS_CMDS",
	} {
		s := &stage{app: tree(t, map[string]string{".bp-config/options.json": text})}
		o, err := s.phpOptions()
		if err == nil {
			_, err = o.preprocess()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	for text, want := range map[string][]string{`"a b"`: {"a b"}, `["a", "b c"]`: {"a", "b c"}, `[["a", "b"], "c"]`: {"a b", "c"}, `""`: {}} {
		o := phpOptions{Preprocess: []byte(text)}
		if got, err := o.preprocess(); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestChoosePHP(t *testing.T) {
	t.Setenv("CF_STACK", "mine")
	modules := tree(t, map[string]string{"mbstring.so": "", "pdo.so": "", "pdo_pgsql.so": "", "mysqlnd.so": "", "opcache.so": "", "xdebug.so": "", "json.so": ""})
	dir := tree(t, map[string]string{"php-fpm8.2*": strings.ReplaceAll(fakePHP, "%s", modules)})
	var log bytes.Buffer
	s := &stage{app: t.TempDir(), log: &log}
	all := s.findPHPs(filepath.Join(dir, "php-fpm*"))
	if len(all) != 1 || all[0].version != "8.2.30" {
		t.Fatalf("got %+v; want 8.2.30", all)
	}
	p, err := s.describePHP(all[0])
	if err != nil || p.extensions != modules {
		t.Fatalf("got %+v, %v; want the directory of modules", p, err)
	}
	want := []string{"extension = mysqlnd.so", "extension = pdo.so", "extension = mbstring.so", "zend_extension = opcache.so", "extension = pdo_pgsql.so"}
	if diff := cmp.Diff(want, (&phpApp{stage: s, php: p, options: phpOptions{Extensions: []string{"mbstring", "JSON", "redis"}}}).extensionLines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := log.String(); strings.Count(text, "WARNING") != 1 || !strings.Contains(text, "The extension 'redis' is not provided by this buildpack: stack 'mine' lacks it") {
		t.Errorf("got %q; want a warning of redis alone", text)
	}
	if got := (&phpApp{stage: s, php: p, options: phpOptions{ZendExtensions: []string{"xdebug"}}}).extensionLines(); len(got) != 6 || got[5] != "zend_extension = xdebug.so" {
		t.Errorf("got %q; want the debugger that was asked for", got)
	}
	for wanted, good := range map[string]bool{"": true, "8.2.x": true, "{PHP_82_LATEST}": true, "{PHP_DEFAULT}": true, "^8.1": true, "8.3.x": false, "{PHP_74_LATEST}": false, "7.4.33": false} {
		_, err := pickPHP(all, phpOptions{Version: wanted}, composerFiles{})
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "PHP_VERSION of .bp-config/options.json asks for PHP") {
			t.Errorf("%s: got %v; want it accepted: %v", wanted, err, good)
		}
	}
	if _, err := pickPHP(all, phpOptions{}, composerFiles{php: "^7.4"}); err == nil || err.Error() != "composer.json asks for PHP ^7.4, which stack 'mine' does not have. Available versions: [8.2.30]" {
		t.Errorf("got %v; want composer.json refused", err)
	}
	if _, err := pickPHP(nil, phpOptions{}, composerFiles{}); err == nil || !strings.Contains(err.Error(), "no php-fpm in stack 'mine'") {
		t.Errorf("got %v; want how to get it", err)
	}
}

func TestMoveToWebDir(t *testing.T) {
	s := &stage{app: tree(t, map[string]string{"index.php": "", ".htaccess": "", ".profile": "", "lib/a.php": "", "composer.json": "", "sub/b.php": "", "manifest.yml": ""}), log: io.Discard}
	if err := (&phpApp{stage: s, options: phpOptions{WebDir: "htdocs", LibDir: "lib"}}).moveToWebDir(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"htdocs/index.php": true, "htdocs/.htaccess": true, ".profile": true, "lib/a.php": true, "composer.json": true, "htdocs/sub/b.php": true, "manifest.yml": true, "index.php": false} {
		if s.has(name) != want {
			t.Errorf("%s: got %v; want %v", name, s.has(name), want)
		}
	}
}

func TestComposerFiles(t *testing.T) {
	s := &stage{app: tree(t, map[string]string{"composer.json": `{"require": {"php": ">=8.1", "ext-MBString": "*", "a/b": "^1"}}`})}
	c, err := s.readComposer(phpOptions{WebDir: "htdocs"})
	if err != nil || c.php != ">=8.1" || !c.packages || cmp.Diff([]string{"mbstring"}, c.extensions) != "" || c.dir != "." {
		t.Errorf("got %+v, %v", c, err)
	}
	s = &stage{app: tree(t, map[string]string{"web/composer.json": "{"})}
	if _, err := s.readComposer(phpOptions{WebDir: "web"}); err == nil || !strings.Contains(err.Error(), "invalid JSON in composer.json") {
		t.Errorf("got %v; want an error", err)
	}
}
