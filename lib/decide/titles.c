/* titles.c - which titles are evidence (lib/title finds similar ones): not short ones, not generic ones, not too
 * frequent ones.
 *
 * Titles are normalised: lower case, one space between words, no punctuation. Those of fewer than LEAST code points
 * never count, and need no line in the list. Up to FEW times a title is never too frequent, however few documents there
 * are. */
#include "decide/decide.h"

enum { LEAST = 10, FEW = 8 };

#define TITLE(text) \
    { text, sizeof text - 1 }
static const doppel_slice empty_titles[] = {
    /* news */
    TITLE("breaking news"),
    TITLE("latest news"),
    TITLE("news in brief"),
    TITLE("top stories"),
    TITLE("live updates"),
    TITLE("press release"),
    TITLE("letters to the editor"),
    TITLE("photo of the day"),
    TITLE("aktuelle nachrichten"),
    TITLE("neueste nachrichten"),
    TITLE("pressemitteilung"),
    TITLE("dernières nouvelles"),
    TITLE("dernières actualités"),
    TITLE("communiqué de presse"),
    TITLE("últimas noticias"),
    TITLE("noticias de última hora"),
    TITLE("comunicado de prensa"),
    TITLE("últimas notícias"),
    TITLE("ultime notizie"),
    TITLE("comunicato stampa"),
    TITLE("laatste nieuws"),
    TITLE("ostatnie wiadomości"),
    TITLE("senaste nyheterna"),
    TITLE("son dakika haberleri"),
    TITLE("последние новости"),
    /* errors */
    TITLE("page not found"),
    TITLE("404 not found"),
    TITLE("404 page not found"),
    TITLE("404 error page"),
    TITLE("error 404"),
    TITLE("error 404 not found"),
    TITLE("error 404 page not found"),
    TITLE("404 file or directory not found"),
    TITLE("the page cannot be found"),
    TITLE("the page you requested was not found"),
    TITLE("301 moved permanently"),
    TITLE("400 bad request"),
    TITLE("401 unauthorized"),
    TITLE("403 forbidden"),
    TITLE("410 gone"),
    TITLE("429 too many requests"),
    TITLE("500 internal server error"),
    TITLE("internal server error"),
    TITLE("502 bad gateway"),
    TITLE("503 service unavailable"),
    TITLE("503 service temporarily unavailable"),
    TITLE("service unavailable"),
    TITLE("504 gateway timeout"),
    TITLE("504 gateway time out"),
    TITLE("runtime error"),
    TITLE("something went wrong"),
    TITLE("seite nicht gefunden"),
    TITLE("page non trouvée"),
    TITLE("page introuvable"),
    TITLE("erreur 404"),
    TITLE("página no encontrada"),
    TITLE("página não encontrada"),
    TITLE("pagina non trovata"),
    TITLE("pagina niet gevonden"),
    TITLE("nie znaleziono strony"),
    TITLE("sidan hittades inte"),
    TITLE("sayfa bulunamadı"),
    TITLE("страница не найдена"),
    TITLE("ошибка 404"),
    TITLE("ペ ー ジ が 見 つ か り ま せ ん"),
    TITLE("페이지를 찾을 수 없습니다"),
    TITLE("404 页 面 不 存 在"),
    TITLE("页 面 不 存 在"),
    /* doors */
    TITLE("access denied"),
    TITLE("access to this page has been denied"),
    TITLE("attention required cloudflare"),
    TITLE("just a moment"),
    TITLE("one moment please"),
    TITLE("please wait"),
    TITLE("checking your browser"),
    TITLE("security check"),
    TITLE("are you a robot"),
    TITLE("are you human"),
    TITLE("redirecting"),
    TITLE("before you continue"),
    TITLE("zugriff verweigert"),
    TITLE("accès refusé"),
    TITLE("acceso denegado"),
    TITLE("acesso negado"),
    TITLE("accesso negato"),
    TITLE("toegang geweigerd"),
    TITLE("доступ запрещен"),
    TITLE("доступ запрещён"),
    /* pages without a title of their own */
    TITLE("untitled document"),
    TITLE("untitled page"),
    TITLE("new page 1"),
    TITLE("unbenanntes dokument"),
    TITLE("document sans titre"),
    TITLE("documento sin título"),
    TITLE("documento sem título"),
    TITLE("documento senza titolo"),
    TITLE("naamloos document"),
    TITLE("документ без названия"),
    TITLE("under construction"),
    TITLE("coming soon"),
    TITLE("site under maintenance"),
    TITLE("apache2 debian default page it works"),
    TITLE("apache2 ubuntu default page it works"),
    TITLE("welcome to nginx"),
    TITLE("iis windows server"),
    TITLE("this domain is for sale"),
    /* front pages, and pages that each site has */
    TITLE("welcome to our website"),
    TITLE("welcome to our site"),
    TITLE("welcome to my website"),
    TITLE("willkommen auf unserer website"),
    TITLE("willkommen auf unserer homepage"),
    TITLE("herzlich willkommen"),
    TITLE("bienvenue sur notre site"),
    TITLE("bienvenidos a nuestro sitio web"),
    TITLE("bem vindo ao nosso site"),
    TITLE("benvenuti nel nostro sito"),
    TITLE("welkom op onze website"),
    TITLE("добро пожаловать"),
    TITLE("главная страница"),
    TITLE("privacy policy"),
    TITLE("cookie policy"),
    TITLE("terms of service"),
    TITLE("terms of use"),
    TITLE("terms and conditions"),
    TITLE("contact us"),
    TITLE("search results"),
    TITLE("shopping cart"),
    TITLE("datenschutzerklärung"),
    TITLE("mentions légales"),
    TITLE("politique de confidentialité"),
    TITLE("política de privacidad"),
    TITLE("política de privacidade"),
    TITLE("privacybeleid"),
    TITLE("polityka prywatności"),
};

static bool is_long_enough(doppel_slice title) {
    size_t points = 0;
    for (size_t i = 0; i < title.length && points < LEAST; i++)
        points += ((unsigned char)title.data[i] & 0xC0) != 0x80;
    return points >= LEAST;
}

bool dp_title_counts(doppel_slice title) {
    if (!is_long_enough(title))
        return false;
    for (size_t i = 0; i < sizeof empty_titles / sizeof *empty_titles; i++)
        if (title.length == empty_titles[i].length && !memcmp(title.data, empty_titles[i].data, title.length))
            return false;
    return true;
}

bool dp_title_is_frequent(uint64_t times, uint64_t documents, double share) {
    return times > FEW && (double)times > share * (double)documents;
}
