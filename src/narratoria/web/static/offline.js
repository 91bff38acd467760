/* On the page that stands in while the server does not run: it looks whether the server is back, and goes on then. */
{
  try {
    document.documentElement.dataset.theme = JSON.parse(localStorage.getItem("narratoria") ?? "{}").theme ?? "dark";
  } catch {
    // storage refused by the browser: the default is fine
  }
  const look = () => fetch("/static/icon.svg", { cache: "no-store" }).then(() => location.reload(), () => setTimeout(look, 1500));
  setTimeout(look, 1500);
}
