<%@ page contentType="text/plain; charset=utf-8" %>hello from hello-war, instance <%= System.getenv("CF_INSTANCE_INDEX") %>, <%= application.getServerInfo() %>
