// Package web drives the web console in a real browser: Chromium, by
// playwright-core on Node, on a daemon with real containers. The steps are in
// browser/, one file for each area; this package prepares the daemon, runs them
// all in one browser, and reports each as a subtest.
package web
