// Package loggregator distributes the logs and metrics of apps: lines of
// containers, of the router and of the API go to the log cache, to clients'
// streams and to syslog drains; what containers use and how long requests take goes
// to the log cache and to streams. What the cache has of apps that are gone, it forgets.
package loggregator
