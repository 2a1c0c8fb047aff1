/* tracking.c - the parameters of queries that tell where a visitor came from, and nothing about the page.
 *
 * The names are those that the makers of the tools document for links they mark or open:
 * - campaigns: utm_* (Google Analytics, and most others since), ga_*, mtm_*, matomo_*, piwik_*, pk_* (Matomo), itm_*,
 *   xtor (AT Internet), wt_mc and wt.mc_id (Webtrends), hsa_* (HubSpot), bsft_* (Blueshift);
 * - clicks on advertisements: gclid, gclsrc, gbraid, wbraid, dclid, gad_*, srsltid (Google), msclkid (Microsoft),
 * fbclid (Facebook), igsh, igshid (Instagram), twclid (Twitter), ttclid (TikTok), li_fat_id (LinkedIn), epik
 * (Pinterest), rdt_cid (Reddit), sccid (Snapchat), yclid, ymclid, ysclid, _openstat (Yandex), ef_id, s_kwcid (Adobe),
 * mkwid, pcrid (Marin), tblci (Taboola), dicbo (Outbrain), irclickid, irgwc (Impact), cjevent (CJ), zanpid (Awin),
 * rb_clickid;
 * - links in mail: mc_cid, mc_eid (Mailchimp), _hsenc, _hsmi, __hs*, hsctatracking (HubSpot), mkt_tok (Marketo), _kx
 *   (Klaviyo), __s (Drip), dm_i (Dotdigital), ml_* (MailerLite), oly_* (Omeda), vero_* (Vero), wicked* (Wicked
 * Reports);
 * - passed on between a site's own pages: _ga, _gac, _gl (Google), gucc*, guce_* (Yahoo), fb_* (Facebook);
 * - sessions kept in the address: jsessionid (Java), phpsessid (PHP).
 *
 * A new one is a word in its place in the table. It belongs here when no page shows anything else without it: `ref`,
 * `source`, `id` and the like do not. */
#include "text/url.h"

#include <strings.h>

/* Whatever starts so. */
static const char *const starts[] = {"utm_", "mtm_", "hsa_", "bsft_"};

/* In order of their bytes, small letters: looked up by halving. */
static const char *const names[] = {
    "__hsfp",
    "__hssc",
    "__hstc",
    "__s",
    "_ga",
    "_gac",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_kx",
    "_openstat",
    "cjevent",
    "dclid",
    "dicbo",
    "dm_i",
    "ef_id",
    "epik",
    "fb_action_ids",
    "fb_action_types",
    "fb_ref",
    "fb_source",
    "fbclid",
    "ga_campaign",
    "ga_content",
    "ga_medium",
    "ga_place",
    "ga_source",
    "ga_term",
    "gad_campaignid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "guccounter",
    "guce_referrer",
    "guce_referrer_sig",
    "hsctatracking",
    "igsh",
    "igshid",
    "irclickid",
    "irgwc",
    "itm_campaign",
    "itm_content",
    "itm_medium",
    "itm_source",
    "itm_term",
    "jsessionid",
    "li_fat_id",
    "matomo_campaign",
    "matomo_keyword",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "mkwid",
    "ml_subscriber",
    "ml_subscriber_hash",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "pcrid",
    "phpsessid",
    "piwik_campaign",
    "piwik_keyword",
    "piwik_kwd",
    "pk_campaign",
    "pk_cid",
    "pk_content",
    "pk_keyword",
    "pk_kwd",
    "pk_medium",
    "pk_source",
    "rb_clickid",
    "rdt_cid",
    "s_kwcid",
    "sccid",
    "srsltid",
    "tblci",
    "ttclid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "wickedsource",
    "wt.mc_id",
    "wt_mc",
    "xtor",
    "yclid",
    "ymclid",
    "ysclid",
    "zanpid",
};

/* As strcasecmp, for a name that ends at `length`. */
static int compare(const char *name, size_t length, const char *entry) {
    for (size_t i = 0; i < length; i++) {
        int order = (uint8_t)dp_url_lower(name[i]) - (uint8_t)entry[i];
        if (order)
            return order;
        if (!entry[i])
            return 1;
    }
    return entry[length] ? -1 : 0;
}

bool dp_url_is_tracking(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t start = strlen(starts[i]);
        if (length > start && !strncasecmp(name, starts[i], start))
            return true;
    }
    size_t low = 0, high = sizeof names / sizeof *names;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(name, length, names[middle]);
        if (!order)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}
